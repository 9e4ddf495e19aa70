import type { PassState } from "./pass-state.js";
import type { Verdict } from "./verdict.js";

/** What was asked, what was seen, how old the attempt was: stands in the history beside the verdict. No references. */
export function told(pass: PassState, verdict: Verdict, settledBy?: string): object {
  const { lookup } = pass.evidence;
  return {
    verdict: verdict.kind,
    ...(settledBy === undefined ? {} : { settledBy }),
    asked: lookup?.by ?? "record",
    saw: lookup === undefined ? "nothing-asked" : lookup.result.kind,
    ...(lookup?.result.kind === "found"
      ? {
          matches: lookup.result.matches.length,
          statuses: lookup.result.matches.map((match) => match.status),
          pages: lookup.result.pages,
        }
      : {}),
    ...(lookup?.result.kind === "failed" ? { cause: lookup.result.cause } : {}),
    ...(lookup === undefined ? {} : { ms: Math.round(lookup.result.ms) }),
    attemptAgeMs: Math.round(pass.clock.sinceFirstAttemptMs),
    sinceQuietMs: Math.round(pass.clock.sinceQuietMs),
    windowMs: Math.round(pass.clock.quiescenceMs),
    mayProveAbsence: pass.capabilities.mayProveAbsence,
    openAttempts: pass.evidence.openAttempts,
    references: pass.evidence.references.length,
  };
}
