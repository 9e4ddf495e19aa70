import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  foreignKey,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  unique,
  uuid,
} from "drizzle-orm/pg-core";
import { bytea, instant } from "./columns.js";

/**
 * The ledger row. Written by `plan` and the transitions, nobody else; drained by the due loop. A healthy table has few
 * rows whose `due_at` is past: growth of those with no transitions means that workers are gone or the connection paused.
 */
export const signingOperation = pgTable(
  "signing_operation",
  {
    tenantId: text("tenant_id").notNull(),
    operationId: uuid("operation_id").notNull(),
    intentKey: text("intent_key").notNull(),
    action: text("action").notNull(),
    connectionId: text("connection_id").notNull(),
    payloadHash: bytea("payload_hash").notNull(),
    schemaVersion: integer("schema_version").notNull(),
    /** Digest per hashed part, so that a conflict can name which parts differ without their values. */
    hashParts: jsonb("hash_parts").$type<Record<string, string>>().notNull(),
    providerKey: uuid("provider_key").notNull(),
    providerRef: text("provider_ref"),
    state: text("state").notNull(),
    reason: text("reason").notNull(),
    attemptNo: integer("attempt_no").notNull().default(0),
    leaseOwner: uuid("lease_owner"),
    leaseExpiresAt: instant("lease_expires_at"),
    /** The process that holds the lease: when its heartbeat stops, the row need not wait for the lease. */
    leaseProcess: uuid("lease_process"),
    dueAt: instant("due_at"),
    /** Jobs that come before this moment are turned away: Retry-After, back-off, spacing of looks. */
    notBefore: instant("not_before"),
    /** Hand-overs to a queue since the last transition. */
    dispatches: integer("dispatches").notNull().default(0),
    sendBefore: instant("send_before"),
    quietFrom: instant("quiet_from"),
    evidenceNo: integer("evidence_no").notNull().default(0),
    eventNo: integer("event_no").notNull().default(1),
    /** Attempts of which it is not proven that they left no request. */
    openAttempts: integer("open_attempts").notNull().default(0),
    /** References and events of ours that were seen (drafts and queued ones count). */
    referencesSeen: integer("references_seen").notNull().default(0),
    /** An attempt's outcome was once uncertain: looked at again after the end. */
    doubtful: boolean("doubtful").notNull().default(false),
    /** Planned again because a replay under the same key is safe, not because absence was proven. */
    replaying: boolean("replaying").notNull().default(false),
    /** A draft of ours that exists: only its second step is still to be made. */
    draftRef: text("draft_ref"),
    /** When the provider was last asked about this row: its poll budget per object. */
    lookedAt: instant("looked_at"),
    /** SHA-256 of the sealed document that a FINALIZE archived. */
    archivedSha256: bytea("archived_sha256"),
    absenceCount: integer("absence_count").notNull().default(0),
    absenceBeganAt: instant("absence_began_at"),
    /** The history line that holds the evidence for a return to PLANNED. */
    proofSeq: integer("proof_seq"),
    openDependencies: integer("open_dependencies").notNull().default(0),
    dependants: integer("dependants").notNull().default(0),
    supersedes: uuid("supersedes"),
    supersedeMode: text("supersede_mode"),
    supersededBy: uuid("superseded_by"),
    /** The operation that this one acts on has been superseded: a refused VOID then needs a person. */
    targetSuperseded: boolean("target_superseded").notNull().default(false),
    targetOperationId: uuid("target_operation_id"),
    targetRef: text("target_ref"),
    basis: text("basis"),
    cause: text("cause"),
    firstAttemptAt: instant("first_attempt_at"),
    lastObservation: jsonb("last_observation").$type<Record<string, unknown>>(),
    requestedBy: text("requested_by"),
    approvedBy: text("approved_by"),
    createdAt: instant("created_at").notNull().defaultNow(),
    updatedAt: instant("updated_at").notNull().defaultNow(),
    finishedAt: instant("finished_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operationId] }),
    unique("signing_operation_intent").on(t.tenantId, t.intentKey),
    // No foreign key to the connection: every plan would lock that one row. `plan` selects from it, and the guards refuse
    // its deletion.
    foreignKey({ columns: [t.tenantId, t.targetOperationId], foreignColumns: [t.tenantId, t.operationId] }),
    // The due loop's only query.
    index("signing_operation_due").on(t.dueAt).where(sql`${t.dueAt} IS NOT NULL`),
    // Lists by any filter, newest first (operation ids are UUIDv7), and counts of what is not final: every combination of
    // connection, action and state is one range of it.
    index("signing_operation_filter").on(t.tenantId, t.connectionId, t.action, t.state, t.operationId),
    // Search by the provider's machine code: rows that were never refused have none.
    index("signing_operation_code")
      .on(t.tenantId, sql`(${t.lastObservation} ->> 'code')`, t.operationId)
      .where(sql`${t.lastObservation} ->> 'code' IS NOT NULL`),
    // The VOIDs of an operation.
    index("signing_operation_target")
      .on(t.tenantId, t.targetOperationId)
      .where(sql`${t.targetOperationId} IS NOT NULL`),
    // What a dead worker held: only leased rows stand in it.
    index("signing_operation_lease_process").on(t.leaseProcess).where(sql`${t.leaseProcess} IS NOT NULL`),
    check("operation_action", sql`${t.action} IN ('SEND','VOID','RESEND','FINALIZE')`),
    check(
      "operation_state",
      sql`${t.state} IN ('PLANNED','IN_FLIGHT','UNKNOWN','RECONCILING','NEEDS_REVIEW','CONFIRMED','TERMINAL_FAILED','SUPERSEDED')`,
    ),
    check("operation_intent_key", sql`${t.intentKey} ~ '^[\\x20-\\x7e]{1,255}$'`),
    check("operation_hash_length", sql`octet_length(${t.payloadHash}) = 32`),
    check("operation_ref_exactly_when_confirmed", sql`(${t.providerRef} IS NOT NULL) = (${t.state} = 'CONFIRMED')`),
    check(
      "operation_owner_exactly_when_leased",
      sql`(${t.leaseOwner} IS NOT NULL) = (${t.state} IN ('IN_FLIGHT','RECONCILING'))`,
    ),
    check("operation_lease_has_expiry", sql`(${t.leaseOwner} IS NOT NULL) = (${t.leaseExpiresAt} IS NOT NULL)`),
    check(
      "operation_live_rows_are_due",
      sql`(${t.state} IN ('PLANNED','UNKNOWN','IN_FLIGHT','RECONCILING') AND (${t.state} <> 'PLANNED' OR ${t.openDependencies} = 0)) = (${t.dueAt} IS NOT NULL)`,
    ),
    check("operation_attempted_has_first", sql`(${t.attemptNo} > 0) = (${t.firstAttemptAt} IS NOT NULL)`),
    check("operation_attempted_has_quiet_from", sql`${t.attemptNo} = 0 OR ${t.quietFrom} IS NOT NULL`),
    check(
      "operation_replanned_has_proof",
      sql`${t.state} <> 'PLANNED' OR ${t.attemptNo} = 0 OR ${t.proofSeq} IS NOT NULL`,
    ),
    check(
      "operation_counts",
      sql`${t.attemptNo} >= 0 AND ${t.openAttempts} BETWEEN 0 AND ${t.attemptNo} AND ${t.openDependencies} >= 0 AND ${t.dependants} >= 0`,
    ),
    check(
      "operation_sent_target_is_bound",
      sql`${t.state} <> 'IN_FLIGHT' OR ${t.action} = 'SEND' OR ${t.targetRef} IS NOT NULL`,
    ),
    check(
      "operation_finished",
      sql`(${t.state} IN ('CONFIRMED','TERMINAL_FAILED','SUPERSEDED')) = (${t.finishedAt} IS NOT NULL)`,
    ),
  ],
);

/** What was approved and what will be sent, encrypted. Frozen; erasure sets bytes to NULL once the operation is final. */
export const approvedPayload = pgTable(
  "approved_payload",
  {
    tenantId: text("tenant_id").notNull(),
    operationId: uuid("operation_id").notNull(),
    schemaVersion: integer("schema_version").notNull(),
    payload: bytea("payload"),
    request: bytea("request"),
    /** SHA-256 of the assembled body. */
    bodyDigest: bytea("body_digest").notNull(),
    keyId: text("key_id").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    erasedAt: instant("erased_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operationId] }),
    foreignKey({
      columns: [t.tenantId, t.operationId],
      foreignColumns: [signingOperation.tenantId, signingOperation.operationId],
    }),
    // What retention has still to look at.
    index("approved_payload_kept").on(t.tenantId, t.operationId).where(sql`${t.payload} IS NOT NULL`),
    check("payload_digest_length", sql`octet_length(${t.bodyDigest}) = 32`),
    check("payload_erased_whole", sql`(${t.payload} IS NULL) = (${t.erasedAt} IS NOT NULL)`),
  ],
);

/** Every reference ever seen for a SEND: one never belongs to two operations. */
export const operationReference = pgTable(
  "operation_reference",
  {
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    providerRef: text("provider_ref").notNull(),
    operationId: uuid("operation_id").notNull(),
    role: text("role").notNull(),
    /** Where it was learnt: answer, late-answer, webhook, lookup. */
    source: text("source").notNull(),
    attemptNo: integer("attempt_no").notNull(),
    seenAt: instant("seen_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.connectionId, t.providerRef] }),
    foreignKey({
      columns: [t.tenantId, t.operationId],
      foreignColumns: [signingOperation.tenantId, signingOperation.operationId],
    }),
    index("operation_reference_operation").on(t.tenantId, t.operationId),
    check("reference_role", sql`${t.role} IN ('kept','extra','draft','evidence')`),
  ],
);

/** Who waits for whom, and why; a row is resolved once, by the end of what it waits for. */
export const operationDependency = pgTable(
  "operation_dependency",
  {
    tenantId: text("tenant_id").notNull(),
    operationId: uuid("operation_id").notNull(),
    dependsOnOperationId: uuid("depends_on_operation_id").notNull(),
    /** target: acts on it; void-first: a SEND waits for a VOID; send-first: a VOID waits for the new SEND. */
    relation: text("relation").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    resolvedAt: instant("resolved_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operationId, t.dependsOnOperationId] }),
    foreignKey({
      columns: [t.tenantId, t.operationId],
      foreignColumns: [signingOperation.tenantId, signingOperation.operationId],
    }),
    foreignKey({
      columns: [t.tenantId, t.dependsOnOperationId],
      foreignColumns: [signingOperation.tenantId, signingOperation.operationId],
    }),
    index("operation_dependency_waiters").on(t.tenantId, t.dependsOnOperationId).where(sql`${t.resolvedAt} IS NULL`),
    check("dependency_relation", sql`${t.relation} IN ('target','void-first','send-first')`),
    check("dependency_not_self", sql`${t.operationId} <> ${t.dependsOnOperationId}`),
  ],
);

/** The append-only history. Time is part of the key so that it can be partitioned. */
export const operationEvent = pgTable(
  "operation_event",
  {
    tenantId: text("tenant_id").notNull(),
    operationId: uuid("operation_id").notNull(),
    seq: integer("seq").notNull(),
    at: instant("at").notNull(),
    kind: text("kind").notNull(),
    fromState: text("from_state"),
    toState: text("to_state"),
    reason: text("reason").notNull(),
    actor: text("actor").notNull(),
    attemptNo: integer("attempt_no").notNull(),
    /** Ids, codes, counts and timings; no personal data. */
    evidence: jsonb("evidence").$type<Record<string, unknown>>(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operationId, t.seq, t.at] }),
    // The last minutes of all operations: rows come in the order of their time, so a range of pages is enough.
    index("operation_event_at").using("brin", t.at).with({ pages_per_range: 32, autosummarize: true }),
  ],
);

/** Content-addressed PDF bytes, encrypted. */
export const document = pgTable(
  "document",
  {
    tenantId: text("tenant_id").notNull(),
    sha256: bytea("sha256").notNull(),
    size: integer("size").notNull(),
    bytes: bytea("bytes"),
    keyId: text("key_id").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    erasedAt: instant("erased_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.sha256] }),
    // What retention has still to look at.
    index("document_kept").on(t.tenantId, t.createdAt).where(sql`${t.bytes} IS NOT NULL`),
    check("document_erased_whole", sql`(${t.bytes} IS NULL) = (${t.erasedAt} IS NOT NULL)`),
    check("document_digest_length", sql`octet_length(${t.sha256}) = 32`),
  ],
);

/** Follow-up work that has no row of its own: audit, poll, notify. Leased while its HTTP call runs, deleted with its result. */
export const workItem = pgTable(
  "work_item",
  {
    tenantId: text("tenant_id").notNull(),
    workItemId: uuid("work_item_id").notNull(),
    kind: text("kind").notNull(),
    dedupeKey: text("dedupe_key").notNull(),
    subjectId: text("subject_id").notNull(),
    runAfter: instant("run_after").notNull(),
    leaseOwner: uuid("lease_owner"),
    leaseExpiresAt: instant("lease_expires_at"),
    attempts: integer("attempts").notNull().default(0),
    /** Jobs that come before this moment are turned away; `run_after` is when the due loop visits. */
    notBefore: instant("not_before"),
    dispatches: integer("dispatches").notNull().default(0),
    createdAt: instant("created_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.workItemId] }),
    unique("work_item_dedupe").on(t.tenantId, t.kind, t.dedupeKey),
    index("work_item_due").on(t.runAfter),
    check("work_item_kind", sql`${t.kind} IN ('audit','poll','notify','probe','policy')`),
    check("work_item_owner_has_lease", sql`(${t.leaseOwner} IS NOT NULL) = (${t.leaseExpiresAt} IS NOT NULL)`),
  ],
);

/**
 * Proof that a guard worked: a sender that woke too late and sent nothing, a claim lost to another worker, a verdict
 * refused because newer evidence had arrived. Beside the history, so that a loser never touches the row.
 */
export const nearMiss = pgTable(
  "near_miss",
  {
    tenantId: text("tenant_id").notNull(),
    operationId: uuid("operation_id").notNull(),
    nearMissId: uuid("near_miss_id").notNull(),
    at: instant("at").notNull().defaultNow(),
    kind: text("kind").notNull(),
    attemptNo: integer("attempt_no").notNull(),
    actor: text("actor").notNull(),
    details: jsonb("details").$type<Record<string, unknown>>(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operationId, t.nearMissId] }),
    check("near_miss_kind", sql`${t.kind} IN ('woke-after-lease','claim-lost','claim-gone','stale-verdict')`),
  ],
);

/** Work for a person: every one has an owner team and a clock. At most one open per kind and subject. */
export const ticket = pgTable(
  "ticket",
  {
    tenantId: text("tenant_id").notNull(),
    ticketId: uuid("ticket_id").notNull(),
    kind: text("kind").notNull(),
    subjectKind: text("subject_kind").notNull(),
    subjectId: text("subject_id").notNull(),
    owner: text("owner").notNull(),
    reason: text("reason").notNull(),
    details: jsonb("details").$type<Record<string, unknown>>(),
    openedAt: instant("opened_at").notNull().defaultNow(),
    dueAt: instant("due_at").notNull(),
    resolvedAt: instant("resolved_at"),
    resolution: text("resolution"),
    resolvedBy: text("resolved_by"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.ticketId] }),
    index("ticket_subject").on(t.tenantId, t.subjectId),
    index("ticket_open").on(t.tenantId, t.dueAt).where(sql`${t.resolvedAt} IS NULL`),
    check(
      "ticket_closed_with_resolution",
      sql`(${t.resolvedAt} IS NULL) = (${t.resolution} IS NULL) AND (${t.resolvedAt} IS NULL) = (${t.resolvedBy} IS NULL)`,
    ),
  ],
);
