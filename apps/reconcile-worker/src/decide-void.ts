import type { ProviderStatus } from "@countersign/provider";
import {
  type Capabilities,
  type Clock,
  type EvidenceFound,
  lookupFailed,
  type Verdict,
  withoutLookup,
} from "./verdict.js";

/** What the record of the target says; undefined where it says nothing of it. Pure. */
export function targetStatus(evidence: EvidenceFound): ProviderStatus | undefined {
  const result = evidence.lookup?.result;
  if (result?.kind !== "found") return undefined;
  return result.matches.find((match) => match.ref === evidence.targetRef)?.status;
}

/** A target that the provider doesn't show: inside its lag that is nothing, after it a contradiction. */
export function targetMissing(clock: Clock): Verdict {
  return clock.sinceQuietMs <= clock.lookupLagMs
    ? { kind: "wait", reason: "target-not-visible-yet" }
    : { kind: "review", reason: "target-not-found" };
}

/** A VOID is settled by looking at its target; what the target says decides (DESIGN §3). */
export function decideVoid(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const { lookup, targetRef } = evidence;
  if (targetRef === undefined) return { kind: "review", reason: "no-target-reference" };
  const conflict = evidence.lastObservation?.kind === "conflict";
  if (lookup === undefined) {
    if (evidence.openAttempts === 0 && !conflict) return { kind: "closed", reason: "every-attempt-closed" };
    if (capabilities.canLookUp) return { kind: "wait", reason: "not-looked-up" };
    if (conflict) return { kind: "review", reason: "void-refused-and-unreadable" };
    return withoutLookup(evidence, capabilities, clock);
  }
  if (lookup.result.kind === "failed") return lookupFailed(lookup.result);
  const status = targetStatus(evidence);
  switch (status) {
    case undefined:
      return targetMissing(clock);
    case "withdrawn":
    case "discarded": {
      // Refused and conflicting attempts changed nothing, so somebody else's hand did.
      const ours = evidence.openAttempts > 0 && !conflict;
      const reason = status === "withdrawn" ? "target-is-void" : "target-is-discarded";
      return {
        kind: "confirm",
        ref: targetRef,
        status,
        settledBy: "lookup",
        reason,
        cause: ours ? "ours" : "already-over",
      };
    }
    case "expired":
      return {
        kind: "confirm",
        ref: targetRef,
        status,
        settledBy: "lookup",
        reason: "target-expired",
        cause: "already-over",
      };
    case "completed":
    case "declined":
      return { kind: "review", reason: `target-${status}` };
    default:
      return targetStillLive(evidence, capabilities, clock);
  }
}

function targetStillLive(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  if (evidence.lastObservation?.kind === "conflict") return { kind: "review", reason: "void-refused-but-target-live" };
  if (evidence.openAttempts === 0) return { kind: "closed", reason: "every-attempt-closed" };
  if (!capabilities.mayProveAbsence) return { kind: "wait", reason: "lookup-not-verified" };
  if (clock.sinceQuietMs < clock.quiescenceMs) return { kind: "wait", reason: "absence-not-proven" };
  return { kind: "absent", reason: "absence-proven" };
}
