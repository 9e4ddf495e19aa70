import type { ProviderStatus } from "./port.js";

/** A provider's word for a request's status, in the ledger's words: `contract_signing.status`. */
export const signingStatusOf: Record<
  ProviderStatus,
  "STAGED" | "SENT" | "VIEWED" | "PARTIALLY_SIGNED" | "COMPLETED" | "DECLINED" | "VOIDED" | "EXPIRED" | "DISCARDED"
> = {
  draft: "STAGED",
  staged: "STAGED",
  sent: "SENT",
  viewed: "VIEWED",
  "partially-signed": "PARTIALLY_SIGNED",
  completed: "COMPLETED",
  declined: "DECLINED",
  withdrawn: "VOIDED",
  expired: "EXPIRED",
  discarded: "DISCARDED",
};

/** Has everybody who is named in it been mailed? Every status after draft and staged means so, but for discarded ones. */
export const meansSent = (status: ProviderStatus): boolean =>
  status !== "draft" && status !== "staged" && status !== "discarded";
