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
  /** undefined: nothing was asked. `list`: one paged list for many operations at once. */
  lookup: { by: "reference" | "metadata" | "list"; result: LookupResult } | undefined;
  /** The bound reference, for VOID, RESEND and FINALIZE. */
  targetRef: string | undefined;
  /** An amendment has replaced it: it is never sent again. */
  superseded: boolean;
  /** The producer asked to stage it, not to mail anybody. */
  stageOnly: boolean;
}

export interface Capabilities {
  /** Is there any path to ask by? */
  canLookUp: boolean;
  /** May an empty answer count towards absence on this connection (documented, or verified there)? */
  mayProveAbsence: boolean;
  /** How long the provider's lookup shows a request, ms from the first attempt; undefined: for good. */
  lookupRetentionMs?: number;
  /** Can a webhook still tell where nothing can be asked? */
  webhookEvidence: boolean;
  /** A draft of ours may be continued: repeating the second step is harmless. */
  secondStep: boolean;
  /** Sending the same bytes under the same key again is documented as safe, or a written policy accepts the named risk. */
  replay: "safe" | "accepted-risk" | "no";
  /** How long after the first attempt such a replay must have arrived, ms. */
  replayWithinMs: number;
}

/** All in database time, ms. */
export interface Clock {
  /** From `quiet_from` to the moment when the look began; negative inside the lease. */
  sinceQuietMs: number;
  /** From the first attempt to the moment when the look began. */
  sinceFirstAttemptMs: number;
  quiescenceMs: number;
  lookupLagMs: number;
  /** How long webhook evidence is waited for where nothing can be looked up. */
  eventWaitMs: number;
  /** How often a target that is not complete is read. */
  pollMs: number;
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
  /** Sending again is safe whatever the earlier attempts did; `untilMs` after the first attempt it no longer is. */
  | { kind: "replay"; reason: string; untilMs: number; quiescenceMs: number }
  /** A draft of ours waits for its second step. */
  | { kind: "continue"; reason: string; ref: string }
  | { kind: "wait"; reason: string; retryAfterMs?: number }
  | { kind: "review"; reason: string };

/** A lookup that failed proves nothing; its own wait, if it named one, is kept. */
export function lookupFailed(result: Extract<LookupResult, { kind: "failed" }>): Verdict {
  const { retryAfterMs } = result;
  return { kind: "wait", reason: "lookup-failed", ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/**
 * Nothing can be asked. A webhook is given its time; then a replay where that is safe, else a person: nobody can know.
 */
export function withoutLookup(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  const nobodyCanTell: Verdict = { kind: "review", reason: "unprovable" };
  const showsRequest = evidence.referencesSeen > 0 || evidence.references.length > 0;
  const mayReplay = capabilities.replay !== "no" && !showsRequest && !evidence.superseded;
  if (mayReplay && clock.sinceFirstAttemptMs < capabilities.replayWithinMs) {
    if (clock.sinceQuietMs < clock.quiescenceMs) {
      return { kind: "wait", reason: "replay-after-quiescence", retryAfterMs: clock.quiescenceMs - clock.sinceQuietMs };
    }
    return {
      kind: "replay",
      reason: capabilities.replay === "safe" ? "replay-safe" : "replay-by-policy",
      untilMs: capabilities.replayWithinMs,
      quiescenceMs: clock.quiescenceMs,
    };
  }
  const patience = clock.quiescenceMs + (capabilities.webhookEvidence ? clock.eventWaitMs : 0);
  if (clock.sinceQuietMs >= patience) return nobodyCanTell;
  const reason = capabilities.webhookEvidence ? "waiting-for-webhook" : "waiting-for-quiescence";
  return { kind: "wait", reason, retryAfterMs: patience - clock.sinceQuietMs };
}
