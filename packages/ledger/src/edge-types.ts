import type { State } from "./state.js";

/** The vocabulary in which `edges.ts` is written: pure data, rendered to SQL by `edge-sql.ts`. */

/** Columns of `signing_operation` that guards read and effects write. */
export type OperationColumn =
  | "absence_began_at"
  | "absence_count"
  | "archived_sha256"
  | "attempt_no"
  | "basis"
  | "cause"
  | "dependants"
  | "doubtful"
  | "draft_ref"
  | "due_at"
  | "event_no"
  | "evidence_no"
  | "finished_at"
  | "first_attempt_at"
  | "last_observation"
  | "last_observation_kind"
  | "lease_expires_at"
  | "lease_owner"
  | "lease_process"
  | "looked_at"
  | "not_before"
  | "open_attempts"
  | "open_dependencies"
  | "proof_seq"
  | "provider_ref"
  | "quiet_from"
  | "references_seen"
  | "replaying"
  | "send_before"
  | "superseded_by"
  | "target_superseded";

/** What a caller passes per row; durations in ms, `began_at` is database time. */
export interface TransitionInput {
  tenantId: string;
  operationId: string;
  /** Owner token of the lease, a fresh UUID per claim. */
  owner?: string;
  /** The `evidence_no` that the decision was made on. */
  evidenceNo?: number;
  leaseMs?: number;
  /** The claiming process, whose heartbeat vouches for the lease. */
  process?: string;
  /** When somebody must look next, from now. */
  dueMs?: number;
  providerRef?: string;
  /** Role under which `providerRef` is stored. */
  referenceRole?: "kept" | "draft" | "evidence";
  /** Where the reference was learnt: `answer`, `late-answer`, `webhook`, `lookup`. */
  referenceSource?: string;
  signingStatus?: string;
  observation?: object;
  /** This result proves that the attempt left no request (declined, refused, not sent): one open attempt fewer. */
  closes?: boolean;
  /** This result shows a request, or restarts quiescence. */
  raises?: boolean;
  /** A reference of ours was learnt. */
  shows?: boolean;
  /** What happened leaves it open whether a request exists: looked at again after the end. */
  doubts?: boolean;
  /** When the look that counts began, database time, as text. */
  beganAt?: string;
  /** The provider was asked about this row at this moment, whatever came of it: database time, as text. */
  lookedAt?: string;
  quiescenceMs?: number;
  confirmations?: number;
  spacingMs?: number;
  sendBeforeMs?: number;
  /** How long after the first attempt a replay under the same key must have arrived, ms. */
  replayWithinMs?: number;
  /** A draft of ours that the next attempt continues. */
  draftRef?: string;
  /** SHA-256 of the archived document, hex. */
  archivedSha256?: string;
  /** Silence after which a worker process counts as dead, ms. */
  deadMs?: number;
  basis?: "proof" | "policy" | "person";
  cause?: string;
  successor?: string;
  actor: string;
  reason: string;
  /** Ids, codes, counts and timings only: no personal data. */
  evidence?: object;
}

export type ParamName =
  | "owner"
  | "evidence_no"
  | "provider_ref"
  | "observation"
  | "began_at"
  | "confirmations"
  | "basis"
  | "cause"
  | "successor"
  | "closes"
  | "raises"
  | "shows"
  | "doubts"
  | "process"
  | "looked_at"
  | "draft_ref"
  | "archived_sha256";
export type DurationName =
  | "lease_ms"
  | "due_ms"
  | "quiescence_ms"
  | "spacing_ms"
  | "send_before_ms"
  | "replay_within_ms"
  | "dead_ms";

export type Operand =
  | { column: OperationColumn; plusMs?: DurationName; plus?: number }
  | { connection: "paused_until" | "circuit_opened_at" }
  | { param: ParamName; minusMs?: DurationName }
  | { now: true; plusMs?: DurationName }
  | { value: string | number | boolean | null };

export type Guard =
  | { left: Operand; is: "=" | "<=" | ">=" | "<" | ">"; right: Operand }
  | { left: Operand; is: "null" | "not-null" }
  | { anyOf: readonly Guard[] }
  | { allOf: readonly Guard[] }
  /** No hold of the tenant, its connection or its action is in force. */
  | { noHold: true }
  /** The process that took the lease has been silent for `dead_ms`. */
  | { workerDead: true };

export type Effect =
  | { set: Operand }
  | { add: number | ParamName }
  | { keepOr: Operand }
  | { latest: Operand }
  | { or: ParamName }
  | { paramOrKeep: ParamName };
export type Effects = { readonly [column in OperationColumn]?: Effect };

/** What else the statement writes in the same commit. */
export type SideRecord = "reference" | "signing" | "ticket" | "request" | "policy";

export interface Edge {
  readonly from: State;
  readonly to: State;
  /** When, and nobody else. */
  readonly when: string;
  readonly guard: readonly Guard[];
  readonly effect: Effects;
  readonly records?: readonly SideRecord[];
  /** Kind of the ticket opened with it. */
  readonly ticket?: string;
}
