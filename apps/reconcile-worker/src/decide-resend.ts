import { targetMissing, targetStatus } from "./decide-void.js";
import {
  type Capabilities,
  type Clock,
  type EvidenceFound,
  lookupFailed,
  type Verdict,
  withoutLookup,
} from "./verdict.js";

/**
 * A reminder leaves no trace that could be looked up: an attempt in doubt can't be proven either way. Only a conflict is
 * explained, by reading the target.
 */
export function decideResend(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const conflict = evidence.lastObservation?.kind === "conflict";
  if (!conflict) {
    if (evidence.openAttempts === 0) return { kind: "closed", reason: "every-attempt-closed" };
    return withoutLookup(evidence, { ...capabilities, webhookEvidence: false }, clock);
  }
  const { lookup } = evidence;
  if (lookup === undefined) return { kind: "review", reason: "resend-refused-and-unreadable" };
  if (lookup.result.kind === "failed") return lookupFailed(lookup.result);
  const status = targetStatus(evidence);
  if (status === undefined) return targetMissing(clock);
  return { kind: "review", reason: isLive(status) ? "resend-refused-but-target-live" : `target-${status}` };
}

const isLive = (status: string): boolean => status === "sent" || status === "viewed" || status === "partially-signed";
