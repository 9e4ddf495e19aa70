import { type Match, meansSent } from "@countersign/provider";
import {
  type Capabilities,
  type Clock,
  type EvidenceFound,
  type KnownReference,
  lookupFailed,
  type Verdict,
  withoutLookup,
} from "./verdict.js";

/** Is this reference proof by itself that our request was sent? */
const provesSent = ({ role, source }: KnownReference): boolean =>
  role !== "draft" && (source === "webhook" || source === "late-answer" || source === "answer");

/** A SEND is settled by what exists of it (DESIGN §6). */
export function decideSend(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const shown = new Set(evidence.references.filter((known) => known.role !== "draft").map((known) => known.ref));
  const matches = evidence.lookup?.result.kind === "found" ? evidence.lookup.result.matches : [];
  for (const match of matches) if (meansSent(match.status)) shown.add(match.ref);
  if (shown.size > 1) return { kind: "review", reason: "more-than-one-match" };

  const keyReused = evidence.lastObservation?.kind === "conflict";
  const found = matches.find((match) => meansSent(match.status));
  if (found !== undefined) {
    if (keyReused) return { kind: "review", reason: "key-reused-with-another-body" };
    const reason = evidence.lookup?.by === "reference" ? "found-by-reference" : "found-by-lookup";
    return { kind: "confirm", ref: found.ref, status: found.status, settledBy: "lookup", reason };
  }
  const proof = evidence.references.find(provesSent);
  if (proof !== undefined) {
    if (keyReused) return { kind: "review", reason: "key-reused-with-another-body" };
    const byWebhook = proof.source === "webhook";
    return {
      kind: "confirm",
      ref: proof.ref,
      status: "sent",
      settledBy: byWebhook ? "webhook" : "lateAnswer",
      reason: byWebhook ? "evidence-by-webhook" : "late-answer",
    };
  }
  if (matches.length > 0) return decideDraft(matches, evidence, capabilities, clock);
  return decideWithoutMatch(evidence, capabilities, clock);
}

/** Nobody has been mailed: a draft is continued, kept as asked for, or a person decides; it is never confirmed as sent. */
function decideDraft(
  matches: readonly Match[],
  evidence: EvidenceFound,
  capabilities: Capabilities,
  clock: Clock,
): Verdict {
  const [draft, ...more] = matches;
  if (draft === undefined || more.length > 0) return { kind: "review", reason: "more-than-one-draft" };
  const others = evidence.references.filter((known) => known.ref !== draft.ref);
  if (others.length > 0) {
    const onlyDrafts = others.every((known) => known.role === "draft");
    return { kind: "review", reason: onlyDrafts ? "more-than-one-draft" : "more-than-one-match" };
  }
  if (evidence.lastObservation?.kind === "conflict") return { kind: "review", reason: "key-reused-with-another-body" };
  if (draft.status === "discarded") return { kind: "review", reason: "draft-discarded" };
  if (evidence.stageOnly) {
    return { kind: "confirm", ref: draft.ref, status: "staged", settledBy: "lookup", reason: "found-staged-as-asked" };
  }
  if (evidence.superseded) return { kind: "review", reason: "draft-of-superseded" };
  if (capabilities.secondStep) return { kind: "continue", reason: "draft-continued", ref: draft.ref };
  // The second call may still be on its way.
  if (clock.sinceQuietMs < clock.quiescenceMs) return { kind: "wait", reason: "draft-found-inside-window" };
  return { kind: "review", reason: "draft-found" };
}

/** Nothing shows a sent request. While something shows *a* request, a look that finds nothing is never absence. */
function decideWithoutMatch(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const showsRequest = evidence.referencesSeen > 0 || evidence.references.length > 0;
  const keyReused = evidence.lastObservation?.kind === "conflict";
  if (evidence.openAttempts === 0 && !showsRequest && !keyReused)
    return { kind: "closed", reason: "every-attempt-closed" };
  const { lookup } = evidence;
  if (lookup === undefined) {
    if (capabilities.canLookUp) return { kind: "wait", reason: "not-looked-up" };
    if (keyReused) return { kind: "review", reason: "key-reused-with-another-body" };
    return withoutLookup(evidence, capabilities, clock);
  }
  if (lookup.result.kind === "failed") return lookupFailed(lookup.result);
  if (showsRequest) {
    return clock.sinceQuietMs <= clock.lookupLagMs
      ? { kind: "wait", reason: "reference-not-visible-yet" }
      : { kind: "review", reason: "reference-not-found" };
  }
  if (keyReused) return { kind: "review", reason: "key-reused-but-nothing-found" };
  if (!capabilities.mayProveAbsence) return { kind: "wait", reason: "lookup-not-verified" };
  if (capabilities.lookupRetentionMs !== undefined && clock.sinceFirstAttemptMs >= capabilities.lookupRetentionMs) {
    return { kind: "review", reason: "lookup-retention-passed" };
  }
  if (clock.sinceQuietMs < clock.quiescenceMs) return { kind: "wait", reason: "absence-not-proven" };
  return { kind: "absent", reason: "absence-proven" };
}
