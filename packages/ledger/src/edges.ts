import type { Edge, Effect, Effects, Guard, Operand, OperationColumn } from "./edge-types.js";
import type { State } from "./state.js";

/**
 * The one table of legal edges (DESIGN §2, §3), as pure data: for each edge its guard and its effect. The SQL of every
 * transition, the database's trigger and the documentation are made from it, so that they cannot disagree.
 */

const now: Operand = { now: true };
const column = (name: OperationColumn): Operand => ({ column: name });
const zero: Operand = { value: 0 };
const nothing: Effect = { set: { value: null } };

const isNull = (left: Operand): Guard => ({ left, is: "null" });
const isNotNull = (left: Operand): Guard => ({ left, is: "not-null" });
const equals = (left: Operand, right: Operand): Guard => ({ left, is: "=", right });

const ownsLease: Guard = equals(column("lease_owner"), { param: "owner" });
const sawAllEvidence: Guard = equals(column("evidence_no"), { param: "evidence_no" });
const leaseExpired: Guard = { left: column("lease_expires_at"), is: "<=", right: now };
const notSuperseded = isNull(column("superseded_by"));
const superseded = isNotNull(column("superseded_by"));
const released = equals(column("open_dependencies"), zero);
const noReference = equals(column("references_seen"), zero);
const noOpenAttempt = equals(column("open_attempts"), zero);
const onlyThisAttemptOpen = equals(column("open_attempts"), { value: 1 });
const voidMayFail: readonly Guard[] = [
  equals(column("dependants"), zero),
  equals(column("target_superseded"), { value: false }),
];
const voidMatters: Guard = {
  anyOf: [{ left: column("dependants"), is: ">", right: zero }, equals(column("target_superseded"), { value: true })],
};

/** Absence (DESIGN §3 "When absence may be concluded"): the look began after the window, often enough, far enough apart. */
const lookBeganAfterWindow: Guard = {
  left: { param: "began_at" },
  is: ">=",
  right: { column: "quiet_from", plusMs: "quiescence_ms" },
};
const lookIsApart: Guard = {
  anyOf: [
    isNull(column("absence_began_at")),
    { left: column("absence_began_at"), is: "<=", right: { param: "began_at", minusMs: "spacing_ms" } },
  ],
};
const enoughLooks: Guard = {
  left: { column: "absence_count", plus: 1 },
  is: ">=",
  right: { param: "confirmations" },
};
const absenceProven: readonly Guard[] = [
  ownsLease,
  sawAllEvidence,
  noReference,
  lookBeganAfterWindow,
  lookIsApart,
  enoughLooks,
];
const everyAttemptClosed: readonly Guard[] = [ownsLease, sawAllEvidence, noReference, noOpenAttempt];

const lastWasRefused: Guard = { left: column("last_observation_kind"), is: "=", right: { value: "refused" } };

const takeLease: Effects = {
  lease_owner: { set: { param: "owner" } },
  lease_expires_at: { set: { now: true, plusMs: "lease_ms" } },
  lease_process: { set: { param: "process" } },
  due_at: { set: { now: true, plusMs: "lease_ms" } },
};
const dropLease: Effects = { lease_owner: nothing, lease_expires_at: nothing, lease_process: nothing };
const forgetLooks: Effects = { absence_count: { set: zero }, absence_began_at: nothing };
const end: Effects = { due_at: nothing, finished_at: { set: now } };
const endLease: Effects = { ...dropLease, ...end };
/** The attempt's own worker recorded its end under its fence: quiescence counts from this moment. */
const attemptEnded: Effects = { quiet_from: { set: now } };
/** `not_before` keeps a job that is early (a redelivery, a stale one) from looking or sending before its time. */
const dueAfter: Effects = {
  due_at: { set: { now: true, plusMs: "due_ms" } },
  not_before: { set: { now: true, plusMs: "due_ms" } },
};
const dueNow: Effects = { due_at: { set: now }, not_before: nothing };
const itsTimeHasCome: Guard = {
  anyOf: [isNull(column("not_before")), { left: column("not_before"), is: "<=", right: now }],
};
const connectionIsOpen: readonly Guard[] = [
  { anyOf: [isNull({ connection: "paused_until" }), { left: { connection: "paused_until" }, is: "<=", right: now }] },
  isNull({ connection: "circuit_opened_at" }),
];
/** A look may also go on what is on record alone: then the provider isn't asked. */
const connectionAllowsLook: readonly Guard[] = [{ allOf: connectionIsOpen }];
const hasReference: readonly Guard[] = [{ left: column("references_seen"), is: ">", right: zero }];
const doubted: Effects = { doubtful: { set: { value: true } } };
const looked: Effects = { looked_at: { paramOrKeep: "looked_at" } };
const allAttemptsAbsent: Effects = { open_attempts: { set: zero } };
const backToPlanned: Effects = {
  ...dropLease,
  ...dueAfter,
  ...forgetLooks,
  ...allAttemptsAbsent,
  ...looked,
  replaying: { set: { value: false } },
  proof_seq: { set: { column: "event_no", plus: 1 } },
};
const confirmed: Effects = {
  ...endLease,
  provider_ref: { set: { param: "provider_ref" } },
  basis: { set: { param: "basis" } },
  cause: { set: { param: "cause" } },
  references_seen: { add: "shows" },
  evidence_no: { add: 1 },
};

export const edges = {
  claimForSubmit: {
    from: "PLANNED",
    to: "IN_FLIGHT",
    when: "submit claim: released, not superseded, connection open, inside send_before",
    guard: [
      notSuperseded,
      released,
      itsTimeHasCome,
      ...connectionIsOpen,
      { noHold: true },
      { anyOf: [isNull(column("send_before")), { left: column("send_before"), is: ">", right: now }] },
    ],
    effect: {
      ...takeLease,
      ...forgetLooks,
      attempt_no: { add: 1 },
      open_attempts: { add: 1 },
      first_attempt_at: { keepOr: now },
      quiet_from: { set: { now: true, plusMs: "lease_ms" } },
      send_before: nothing,
      proof_seq: nothing,
    },
    records: ["request"],
  },
  sendBeforePassed: {
    from: "PLANNED",
    to: "UNKNOWN",
    when: "send_before has passed: the absence proof is too old to act on",
    guard: [released, { left: column("send_before"), is: "<=", right: now }],
    effect: {
      ...forgetLooks,
      ...dueNow,
      quiet_from: { latest: now },
      // The proof that closed the attempts has aged: they count as open until it is taken again.
      open_attempts: { latest: { value: 1 } },
      send_before: nothing,
      proof_seq: nothing,
    },
  },
  evidenceOnPlanned: {
    from: "PLANNED",
    to: "UNKNOWN",
    when: "evidence that a request exists arrived",
    guard: [],
    effect: {
      ...forgetLooks,
      ...dueNow,
      quiet_from: { latest: now },
      evidence_no: { add: 1 },
      references_seen: { add: "shows" },
      send_before: nothing,
      proof_seq: nothing,
      ...doubted,
    },
    records: ["reference"],
  },
  supersedePlanned: {
    from: "PLANNED",
    to: "SUPERSEDED",
    when: "an amendment or a VOID came before it was sent, or its target turned out never to exist",
    guard: [],
    effect: { ...end, superseded_by: { keepOr: { param: "successor" } } },
  },
  confirm: {
    from: "IN_FLIGHT",
    to: "CONFIRMED",
    when: "2xx with a provider reference, under the lease and on the evidence it knew",
    guard: [ownsLease, sawAllEvidence],
    effect: {
      ...confirmed,
      ...attemptEnded,
      last_observation: { set: { param: "observation" } },
      archived_sha256: { set: { param: "archived_sha256" } },
    },
    records: ["reference", "signing"],
  },
  refuse: {
    from: "IN_FLIGHT",
    to: "TERMINAL_FAILED",
    when: "definitive refusal, every earlier attempt proven absent, no reference or event of ours",
    guard: [ownsLease, sawAllEvidence, onlyThisAttemptOpen, noReference, ...voidMayFail],
    effect: {
      ...endLease,
      ...attemptEnded,
      ...allAttemptsAbsent,
      last_observation: { set: { param: "observation" } },
      evidence_no: { add: 1 },
    },
  },
  refuseReplay: {
    from: "IN_FLIGHT",
    to: "TERMINAL_FAILED",
    when: "a safe replay is definitively refused: the key itself says that nothing was made",
    guard: [ownsLease, sawAllEvidence, equals(column("replaying"), { value: true }), noReference, ...voidMayFail],
    effect: {
      ...endLease,
      ...attemptEnded,
      ...allAttemptsAbsent,
      last_observation: { set: { param: "observation" } },
      evidence_no: { add: 1 },
    },
  },
  voidRefused: {
    from: "IN_FLIGHT",
    to: "NEEDS_REVIEW",
    when: "a VOID is refused while something waits for it or its target is superseded",
    guard: [ownsLease, sawAllEvidence, onlyThisAttemptOpen, noReference, voidMatters],
    effect: {
      ...dropLease,
      ...attemptEnded,
      ...allAttemptsAbsent,
      due_at: nothing,
      last_observation: { set: { param: "observation" } },
      evidence_no: { add: 1 },
    },
    records: ["ticket"],
    ticket: "needs-review",
  },
  markUnknown: {
    from: "IN_FLIGHT",
    to: "UNKNOWN",
    when: "anything else: the wait budget ended, and that proves nothing",
    guard: [ownsLease],
    effect: {
      ...dropLease,
      ...attemptEnded,
      ...dueAfter,
      last_observation: { set: { param: "observation" } },
      open_attempts: { add: "closes" },
      evidence_no: { add: "raises" },
      references_seen: { add: "shows" },
      doubtful: { or: "doubts" },
    },
    records: ["reference"],
  },
  sweepSubmit: {
    from: "IN_FLIGHT",
    to: "UNKNOWN",
    when: "the lease expired: the outcome is unknown, not failed",
    guard: [leaseExpired],
    effect: { ...dropLease, ...dueNow, ...doubted },
  },
  sweepDeadSubmit: {
    from: "IN_FLIGHT",
    to: "UNKNOWN",
    when: "the worker's heartbeat stopped: presence may be looked for at once, absence still waits for the lease",
    guard: [{ workerDead: true }],
    effect: { ...dropLease, ...dueNow, ...doubted },
  },
  payloadChanged: {
    from: "IN_FLIGHT",
    to: "NEEDS_REVIEW",
    when: "stored payload or document no longer matches its hash; nothing was sent",
    guard: [ownsLease],
    effect: { ...dropLease, ...attemptEnded, due_at: nothing, open_attempts: { add: -1 } },
    records: ["ticket"],
    ticket: "needs-review",
  },
  claimForReconcile: {
    from: "UNKNOWN",
    to: "RECONCILING",
    when: "reconcile claim, no earlier than its time; where the provider must be asked, only over an open connection",
    guard: [
      itsTimeHasCome,
      { anyOf: [...connectionAllowsLook, equals(column("open_attempts"), zero), ...hasReference] },
    ],
    effect: takeLease,
  },
  confirmFound: {
    from: "RECONCILING",
    to: "CONFIRMED",
    when: "exactly one match, in a status that means sent (VOID: the target is void)",
    guard: [ownsLease, sawAllEvidence],
    effect: confirmed,
    records: ["reference", "signing"],
  },
  absentSoPlanned: {
    from: "RECONCILING",
    to: "PLANNED",
    when: "absence proven by lookups; same identity, key and bytes",
    guard: [...absenceProven, notSuperseded, released],
    effect: { ...backToPlanned, send_before: { set: { now: true, plusMs: "send_before_ms" } } },
  },
  replaySafe: {
    from: "RECONCILING",
    to: "PLANNED",
    when: "replay under the same key is safe (capability or written policy), inside its retention, after the window",
    guard: [
      ownsLease,
      sawAllEvidence,
      noReference,
      lookBeganAfterWindow,
      notSuperseded,
      released,
      { left: { column: "first_attempt_at", plusMs: "replay_within_ms" }, is: ">", right: now },
    ],
    effect: {
      ...backToPlanned,
      open_attempts: { add: 0 },
      replaying: { set: { value: true } },
      send_before: { set: { column: "first_attempt_at", plusMs: "replay_within_ms" } },
    },
  },
  draftContinued: {
    from: "RECONCILING",
    to: "PLANNED",
    when: "a draft of ours exists and nobody has been mailed: its second step may be repeated",
    guard: [ownsLease, sawAllEvidence, notSuperseded, released],
    effect: { ...backToPlanned, draft_ref: { set: { param: "draft_ref" } }, send_before: nothing },
  },
  declinedSoPlanned: {
    from: "RECONCILING",
    to: "PLANNED",
    when: "every attempt has a recorded observation and each was declined, refused or never sent",
    guard: [...everyAttemptClosed, notSuperseded, released],
    effect: { ...backToPlanned, send_before: nothing },
  },
  absentSoSuperseded: {
    from: "RECONCILING",
    to: "SUPERSEDED",
    when: "absence proven and superseded: never back to where a claim could send it",
    guard: [...absenceProven, superseded],
    effect: { ...endLease, ...allAttemptsAbsent },
  },
  declinedSoSuperseded: {
    from: "RECONCILING",
    to: "SUPERSEDED",
    when: "every attempt closed and superseded",
    guard: [...everyAttemptClosed, superseded],
    effect: endLease,
  },
  absentAndRefused: {
    from: "RECONCILING",
    to: "TERMINAL_FAILED",
    when: "absence proven and the last attempt was definitively refused",
    guard: [...absenceProven, lastWasRefused, ...voidMayFail],
    effect: { ...endLease, ...allAttemptsAbsent },
  },
  refusedByAll: {
    from: "RECONCILING",
    to: "TERMINAL_FAILED",
    when: "every attempt closed and the last one definitively refused",
    guard: [...everyAttemptClosed, lastWasRefused, ...voidMayFail],
    effect: endLease,
  },
  absentOnce: {
    from: "RECONCILING",
    to: "UNKNOWN",
    when: "an absence that counts, but not enough of them yet",
    guard: [ownsLease, sawAllEvidence, lookBeganAfterWindow, lookIsApart],
    effect: {
      ...dropLease,
      ...dueAfter,
      ...looked,
      absence_count: { add: 1 },
      absence_began_at: { set: { param: "began_at" } },
    },
  },
  inconclusive: {
    from: "RECONCILING",
    to: "UNKNOWN",
    when: "inconclusive, or newer evidence arrived",
    guard: [ownsLease],
    effect: { ...dropLease, ...dueAfter, ...looked },
  },
  sweepReconcile: {
    from: "RECONCILING",
    to: "UNKNOWN",
    when: "the lease expired",
    guard: [leaseExpired],
    effect: { ...dropLease, ...dueNow },
  },
  sweepDeadReconcile: {
    from: "RECONCILING",
    to: "UNKNOWN",
    when: "the worker's heartbeat stopped; it only read",
    guard: [{ workerDead: true }],
    effect: { ...dropLease, ...dueNow },
  },
  conflict: {
    from: "RECONCILING",
    to: "NEEDS_REVIEW",
    when: "conflicting evidence, or no way to prove anything",
    guard: [ownsLease, sawAllEvidence],
    effect: { ...dropLease, due_at: nothing },
    records: ["ticket", "policy"],
    ticket: "needs-review",
  },
  decideConfirmed: {
    from: "NEEDS_REVIEW",
    to: "CONFIRMED",
    when: "a named person or policy keeps a reference",
    guard: [sawAllEvidence],
    effect: {
      ...end,
      provider_ref: { set: { param: "provider_ref" } },
      basis: { set: { param: "basis" } },
      cause: { set: { param: "cause" } },
      references_seen: { add: "shows" },
      evidence_no: { add: 1 },
    },
    records: ["reference", "signing"],
  },
  decideSuperseded: {
    from: "NEEDS_REVIEW",
    to: "SUPERSEDED",
    when: "a named person or policy abandons it",
    guard: [sawAllEvidence],
    effect: { ...end, basis: { set: { param: "basis" } }, evidence_no: { add: 1 } },
  },
} as const satisfies Record<string, Edge>;

export type EdgeName = keyof typeof edges;

/** Every legal (from, to), each once, sorted: what the database's trigger allows. */
export function legalPairs(): readonly (readonly [State, State])[] {
  const seen = new Map<string, readonly [State, State]>();
  for (const edge of Object.values<Edge>(edges)) seen.set(`${edge.from} ${edge.to}`, [edge.from, edge.to]);
  return [...seen.keys()].sort().flatMap((key) => {
    const pair = seen.get(key);
    return pair === undefined ? [] : [pair];
  });
}
