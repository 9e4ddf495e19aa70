import {
  effectOf,
  type ReplayCandidate,
  type RequestStanding,
  replayable,
  type SigningStatus,
} from "@countersign/ledger";
import { isHint, ownOperation, type SigningEvent, signingStatusOf, type WebhookContract } from "@countersign/provider";
import type { ReplayPreview } from "./schema-inbox.js";

/** What a candidate says: nothing more to find out, or a story about a request. */
export type Meaning =
  | { kind: "decided"; preview: ReplayPreview }
  /** `operationId`: what its metadata names for this tenant, whether there is such an operation or not. */
  | { kind: "story"; providerRef: string; status: SigningStatus | undefined; operationId?: string };

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
export function meaningOf(
  candidate: ReplayCandidate,
  contract: WebhookContract | undefined,
  tenantId: string,
): Meaning {
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
    ...ownOperation(event, tenantId),
  };
}

/** Nothing is applied on the word of such an event alone. */
function whyOnlyAHint(candidate: ReplayCandidate, contract: WebhookContract, event: SigningEvent): string | undefined {
  if (!candidate.hint && !isHint(contract, event.weakId === true)) return undefined;
  if (!contract.scheme.authenticatesBody) return "body-not-authenticated";
  return candidate.weakId || event.weakId === true ? "id-derived" : "stored-as-hint";
}

/** What a story does to its request. */
export interface Effect {
  preview: ReplayPreview;
  /** How the request stands afterwards. */
  after: RequestStanding;
}

/**
 * What a story does to a request that stands as `standing` says; the same words as the applier leaves on the row. `named`:
 * the operation of ours that its metadata names. Pure.
 */
export function effectOnRequest(
  { status }: { status: SigningStatus | undefined },
  named: string | null,
  standing: RequestStanding,
): Effect {
  const owner = standing.operationId ?? standing.seenFor;
  if (named !== null && owner !== null && named !== owner) {
    return { preview: preview("conflict", { reason: "reference-of-another-operation" }), after: standing };
  }
  if (standing.operationId !== null) return tellBound(status, standing, null);
  if (named === null || standing.seenFor !== null) return { preview: waits(named), after: standing };
  // Evidence comes first: a draft is bound by it, anything else waits until its operation takes the reference.
  const seen = { ...standing, seenFor: named };
  if (status !== "STAGED" && status !== "DISCARDED") return { preview: waits(named), after: seen };
  return tellBound(status, { ...seen, operationId: named, status: standing.status ?? "STAGED" }, named);
}

const waits = (evidenceFor: string | null): ReplayPreview =>
  preview("waits", { reason: "unbound-reference", evidenceFor });

function tellBound(status: SigningStatus | undefined, standing: RequestStanding, evidenceFor: string | null): Effect {
  const { status: current } = standing;
  if (status === undefined || current === null) {
    const reason = status === undefined ? "no-meaning-for-status" : "already-unbound";
    return { preview: preview("nothing", { reason, evidenceFor }), after: standing };
  }
  const effect = effectOf(current, status);
  if (effect === "applied")
    return { preview: preview("applied", { status, evidenceFor }), after: { ...standing, status } };
  const told =
    effect === "conflict"
      ? preview("conflict", { reason: `${status.toLowerCase()}-after-${current.toLowerCase()}`, evidenceFor })
      : preview("nothing", { reason: `already-${current.toLowerCase()}`, evidenceFor });
  return { preview: told, after: standing };
}
