import type { LookupResult, ObservationKind, ProviderStatus } from "@countersign/provider";

/** A reference that is already on record, by where it was learnt. */
export interface KnownReference {
  ref: string;
  /** `draft`: nobody has been mailed for it. */
  role: "kept" | "extra" | "draft" | "evidence";
  /** `webhook` and `late-answer` show a request that was sent; `queued` and `mid-call` must be looked at. */
  source: string;
}

/** What a reconcile pass found out. Order never matters. */
export interface EvidenceFound {
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  references: readonly KnownReference[];
  /** Attempts of which it is not proven that they left no request. */
  openAttempts: number;
  attemptNo: number;
  /** References and events of ours that were seen. */
  referencesSeen: number;
  lastObservation: { kind?: ObservationKind; code?: string; retryAfterMs?: number } | undefined;
  /** undefined: nothing was asked. */
  lookup: { by: "reference" | "metadata"; result: LookupResult } | undefined;
  /** The bound reference, for VOID. */
  targetRef: string | undefined;
}

export interface Capabilities {
  /** Is there any path to ask by? */
  canLookUp: boolean;
  /** May an empty answer count towards absence on this connection (documented, or verified there)? */
  mayProveAbsence: boolean;
}

/** All in database time, ms. */
export interface Clock {
  /** From `quiet_from` to the moment when the look began; negative inside the lease. */
  sinceQuietMs: number;
  quiescenceMs: number;
  lookupLagMs: number;
  /** How long webhook evidence is waited for where nothing can be looked up. */
  eventWaitMs: number;
}

export type SettledBy = "lookup" | "webhook" | "lateAnswer" | "declined" | "review";

export type Verdict =
  | {
      kind: "confirm";
      ref: string;
      status: ProviderStatus;
      settledBy: SettledBy;
      reason: string;
      cause?: "ours" | "already-over";
    }
  /** An authoritative look found nothing, after the window. Whether it is enough is decided by the conditional write. */
  | { kind: "absent"; reason: string }
  /** Every attempt has a recorded observation and each was declined, refused or never sent. */
  | { kind: "closed"; reason: string }
  | { kind: "wait"; reason: string; retryAfterMs?: number }
  | { kind: "review"; reason: string };

/** Has everybody who is named in it been mailed? Every status after draft and staged means that it was sent. */
const meansSent = (status: ProviderStatus): boolean => status !== "draft" && status !== "staged";

/** Is this reference proof by itself that our request was sent? */
const provesSent = ({ role, source }: KnownReference): boolean =>
  role !== "draft" && (source === "webhook" || source === "late-answer" || source === "answer");

/**
 * The decision table of DESIGN §6, pure: evidence, what the connection can prove, and database time in, a verdict out.
 * No evidence never gives `confirm`, `absent` or `closed`; more evidence never turns a conflict into a confirmation.
 */
export function decide(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  return evidence.action === "VOID"
    ? decideVoid(evidence, capabilities, clock)
    : decideSend(evidence, capabilities, clock);
}

function decideSend(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
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
  if (matches.length > 0) return { kind: "review", reason: "draft-found" };
  return decideWithoutMatch(evidence, capabilities, clock);
}

/** Nothing shows a sent request. While something shows *a* request, a look that finds nothing is never absence. */
function decideWithoutMatch(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const showsRequest = evidence.referencesSeen > 0 || evidence.references.length > 0;
  if (evidence.openAttempts === 0 && !showsRequest) return { kind: "closed", reason: "every-attempt-closed" };
  const { lookup } = evidence;
  if (lookup === undefined) return withoutLookup(showsRequest, capabilities, clock);
  if (lookup.result.kind === "failed") {
    const { retryAfterMs } = lookup.result;
    return { kind: "wait", reason: "lookup-failed", ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
  if (showsRequest) {
    return clock.sinceQuietMs <= clock.lookupLagMs
      ? { kind: "wait", reason: "reference-not-visible-yet" }
      : { kind: "review", reason: "reference-not-found" };
  }
  if (evidence.lastObservation?.kind === "conflict") return { kind: "review", reason: "key-reused-but-nothing-found" };
  if (!capabilities.mayProveAbsence) return { kind: "wait", reason: "lookup-not-verified" };
  if (clock.sinceQuietMs < clock.quiescenceMs) return { kind: "wait", reason: "absence-not-proven" };
  return { kind: "absent", reason: "absence-proven" };
}

function withoutLookup(showsRequest: boolean, capabilities: Capabilities, clock: Clock): Verdict {
  if (capabilities.canLookUp) return { kind: "wait", reason: "not-looked-up" };
  // Only a webhook can still tell: it is given its time before a person is asked.
  if (!showsRequest && clock.sinceQuietMs < clock.quiescenceMs + clock.eventWaitMs) {
    return { kind: "wait", reason: "waiting-for-webhook" };
  }
  return { kind: "review", reason: "unprovable" };
}

/** A VOID is settled by looking at its target; what the target says decides (DESIGN §3). */
function decideVoid(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const { lookup, targetRef } = evidence;
  if (targetRef === undefined) return { kind: "review", reason: "no-target-reference" };
  if (lookup === undefined) {
    if (evidence.openAttempts === 0 && evidence.lastObservation?.kind !== "conflict") {
      return { kind: "closed", reason: "every-attempt-closed" };
    }
    return withoutLookup(true, capabilities, clock);
  }
  const { result } = lookup;
  if (result.kind === "failed") {
    return {
      kind: "wait",
      reason: "lookup-failed",
      ...(result.retryAfterMs === undefined ? {} : { retryAfterMs: result.retryAfterMs }),
    };
  }
  const target = result.kind === "found" ? result.matches.find((match) => match.ref === targetRef) : undefined;
  if (target === undefined) {
    return clock.sinceQuietMs <= clock.lookupLagMs
      ? { kind: "wait", reason: "target-not-visible-yet" }
      : { kind: "review", reason: "target-not-found" };
  }
  switch (target.status) {
    case "withdrawn": {
      // Refused and conflicting attempts changed nothing, so somebody else's hand did.
      const ours = evidence.openAttempts > 0 && evidence.lastObservation?.kind !== "conflict";
      return {
        kind: "confirm",
        ref: targetRef,
        status: "withdrawn",
        settledBy: "lookup",
        reason: "target-is-void",
        cause: ours ? "ours" : "already-over",
      };
    }
    case "expired":
      return {
        kind: "confirm",
        ref: targetRef,
        status: "expired",
        settledBy: "lookup",
        reason: "target-expired",
        cause: "already-over",
      };
    case "completed":
    case "declined":
      return { kind: "review", reason: `target-${target.status}` };
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
