import { targetMissing, targetStatus } from "./decide-void.js";
import { type Clock, type EvidenceFound, lookupFailed, type Verdict } from "./verdict.js";

/** Reading may be repeated at any age. */
const anyAgeMs = 10 * 365 * 86_400_000;

/**
 * FINALIZE only reads: every attempt may be repeated once the target is complete; until then the target is looked at,
 * at the poll interval, and nothing is fetched.
 */
export function decideFinalize(evidence: EvidenceFound, clock: Clock): Verdict {
  const { lookup } = evidence;
  if (lookup === undefined) return fetchAgain(evidence, "target-unreadable");
  if (lookup.result.kind === "failed") return lookupFailed(lookup.result);
  const status = targetStatus(evidence);
  switch (status) {
    case undefined:
      return targetMissing(clock);
    case "completed":
      return fetchAgain(evidence, "target-completed");
    case "declined":
    case "withdrawn":
    case "expired":
    case "discarded":
      return { kind: "review", reason: `target-${status}` };
    default:
      return { kind: "wait", reason: "target-not-complete", retryAfterMs: clock.pollMs };
  }
}

function fetchAgain(evidence: EvidenceFound, reason: string): Verdict {
  return evidence.openAttempts === 0
    ? { kind: "closed", reason }
    : { kind: "replay", reason, untilMs: anyAgeMs, quiescenceMs: 0 };
}
