import { effectOf, type ReplayCandidate, replayable, type SigningRow, type SigningStatus } from "@countersign/ledger";
import { type SigningEvent, signingStatusOf, type WebhookContract } from "@countersign/provider";
import type { ReplayPreview } from "./schema-inbox.js";

/** What a candidate says: nothing more to find out, or a story about a request. */
export type Meaning =
  | { kind: "decided"; preview: ReplayPreview }
  | { kind: "story"; providerRef: string; status: SigningStatus | undefined };

const due: readonly string[] = ["RECEIVED", "WAITING"];
const open: readonly string[] = replayable;

const preview = (outcome: ReplayPreview["outcome"], more: Partial<ReplayPreview> = {}): ReplayPreview => ({
  outcome,
  reason: null,
  status: null,
  evidenceFor: null,
  ...more,
});
const decided = (outcome: ReplayPreview["outcome"], reason: string): Meaning => ({
  kind: "decided",
  preview: preview(outcome, { reason }),
});

/** Why an event would not be made due again; undefined where it would. Pure. */
export function whyNotReplayed(event: { status: string; hasBody: boolean }): NotReplayed | undefined {
  if (due.includes(event.status)) return "already-due";
  if (!open.includes(event.status)) return "event-is-settled";
  return event.hasBody ? undefined : "body-erased";
}

/** `already-due`: it is on its way; `event-is-settled`: nobody will apply it again; `body-erased`: there is nothing to apply. */
export type NotReplayed = "already-due" | "event-is-settled" | "body-erased";

/** What the stored bytes say today, which may be more than they said when they came in. `contract`: of its endpoint's scheme. Pure. */
export function meaningOf(candidate: ReplayCandidate, contract: WebhookContract | undefined): Meaning {
  const refusal = whyNotReplayed({ status: candidate.status, hasBody: candidate.body !== undefined });
  if (refusal !== undefined || candidate.body === undefined) return decided("nothing", refusal ?? "body-erased");
  if (contract === undefined) return decided("fails", "scheme-unknown");
  // Verified when it came in; its headers are not kept.
  const event = contract.parse(candidate.body, {}, candidate.providerEventId);
  if ("uninterpretable" in event) return decided("quarantined", event.reason);
  const doubt = whyOnlyAHint(candidate, contract, event);
  if (doubt !== undefined) return decided("asks-provider", doubt);
  return {
    kind: "story",
    providerRef: event.ref,
    status: event.status === undefined ? undefined : signingStatusOf[event.status],
  };
}

/** Nothing is applied on the word of such an event alone. */
function whyOnlyAHint(
  candidate: ReplayCandidate,
  { scheme }: WebhookContract,
  event: SigningEvent,
): string | undefined {
  if (!scheme.authenticatesBody) return "body-not-authenticated";
  if (candidate.weakId || event.weakId === true) return "id-derived";
  return candidate.hint ? "stored-as-hint" : undefined;
}

/** What a story does to a request that stands as `standing` says; the same words as the applier leaves on the row. Pure. */
export function effectOnRequest(
  candidate: ReplayCandidate,
  story: { status: SigningStatus | undefined },
  standing: SigningRow,
): ReplayPreview {
  const named = candidate.namesOurs ? candidate.operationId : null;
  if (standing.operationId === null) return preview("waits", { reason: "unbound-reference", evidenceFor: named });
  if (named !== null && named !== standing.operationId) {
    return preview("conflict", { reason: "reference-of-another-operation" });
  }
  const { status } = story;
  if (status === undefined) return preview("nothing", { reason: "no-meaning-for-status" });
  const current = standing.status;
  if (current === null) return preview("nothing", { reason: "already-unbound" });
  const effect = effectOf(current, status);
  if (effect === "applied") return preview("applied", { status });
  const reason =
    effect === "conflict"
      ? `${status.toLowerCase()}-after-${current.toLowerCase()}`
      : `already-${current.toLowerCase()}`;
  return preview(effect === "conflict" ? "conflict" : "nothing", { reason });
}

/**
 * What a replay of this event would do now. Exact for as long as nobody else tells of its request; an event whose request
 * was not known when it was stored has to be given that request's standing. Pure.
 */
export function previewReplay(
  candidate: ReplayCandidate,
  contract: WebhookContract | undefined,
  standing: SigningRow = { operationId: candidate.boundTo, status: candidate.signingStatus },
): ReplayPreview {
  const meaning = meaningOf(candidate, contract);
  return meaning.kind === "decided" ? meaning.preview : effectOnRequest(candidate, meaning, standing);
}
