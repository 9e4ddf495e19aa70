import type { Connection, TransitionRow } from "@countersign/ledger";
import type { ActionCapability, SignatureProvider } from "@countersign/provider";
import type { Capabilities } from "./verdict.js";

export interface CapabilityInputs {
  provider: SignatureProvider;
  connection: Connection;
  /** A written policy accepts the provider's named risk of a replay for this action. */
  replayRiskAccepted: boolean;
  /** Deadline of a submission and what is kept free before the key's retention ends, ms. */
  deadlineMs: number;
  marginMs: number;
}

/** Can the target of a VOID, RESEND or FINALIZE be read by its reference? */
export const readsByReference = (provider: SignatureProvider): boolean =>
  provider.capabilities.SEND.lookup.byReference || provider.capabilities.VOID.lookup.byReference;

/** What this connection can prove about a row: the adapter's record, what was verified here, and what is written. */
export function capabilitiesOf(row: TransitionRow, given: CapabilityInputs): Capabilities {
  const { provider, connection } = given;
  const capability = provider.capabilities[row.action];
  const { lookup } = capability;
  const canLookUp =
    row.action === "SEND"
      ? (lookup.byMetadata && connection.metadataLookup) || (row.references_seen > 0 && lookup.byReference)
      : row.action === "VOID" && readsByReference(provider);
  return {
    canLookUp,
    mayProveAbsence: lookup.documented || connection.lookupVerifiedAt !== null,
    ...(lookup.retentionMs === undefined ? {} : { lookupRetentionMs: lookup.retentionMs }),
    webhookEvidence: capability.webhookEvidence,
    secondStep: capability.secondStep !== undefined,
    ...replayOf(capability, given),
  };
}

/** Safe by the reference, by a policy that accepts the risk by name, or not at all; always to arrive inside the retention. */
function replayOf(
  { idempotency }: ActionCapability,
  { replayRiskAccepted, deadlineMs, marginMs }: CapabilityInputs,
): Pick<Capabilities, "replay" | "replayWithinMs"> {
  if (idempotency.kind !== "keyed") return { replay: "no", replayWithinMs: 0 };
  const accepted = replayRiskAccepted && idempotency.replayRisk !== undefined;
  return {
    replay: idempotency.replaySafe ? "safe" : accepted ? "accepted-risk" : "no",
    replayWithinMs: Math.max(0, idempotency.retentionMs - deadlineMs - marginMs),
  };
}
