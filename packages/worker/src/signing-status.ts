import type { SigningStatus } from "@countersign/ledger";
import type { ProviderStatus } from "@countersign/provider";

/** The provider's words in the ledger's. */
export const signingStatusOf: Record<ProviderStatus, SigningStatus> = {
  draft: "STAGED",
  staged: "STAGED",
  sent: "SENT",
  viewed: "VIEWED",
  "partially-signed": "PARTIALLY_SIGNED",
  completed: "COMPLETED",
  declined: "DECLINED",
  withdrawn: "VOIDED",
  expired: "EXPIRED",
  discarded: "VOIDED",
};
