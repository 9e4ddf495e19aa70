import { sql } from "drizzle-orm";
import { bigint, check, index, integer, jsonb, pgTable, primaryKey, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytea, instant } from "./columns.js";
import { tenant } from "./tenant.js";

/** Who may log in to the console. Only the SHA-256 of the token is stored; a revoked row stays, since actions name it. */
export const consoleOperator = pgTable(
  "console_operator",
  {
    operatorId: uuid("operator_id").primaryKey(),
    /** What decisions and the log of actions call this person or team. */
    name: text("name").notNull(),
    role: text("role").notNull(),
    /** Tenant ids; null: every tenant. */
    tenants: text("tenants").array(),
    tokenHash: bytea("token_hash").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    revokedAt: instant("revoked_at"),
  },
  (t) => [
    unique("console_operator_token").on(t.tokenHash),
    check("console_operator_role", sql`${t.role} IN ('viewer','operator')`),
    check("console_operator_name", sql`${t.name} ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'`),
  ],
);

/** Everything that was done through the console: written before it is done, with its result afterwards. */
export const consoleAction = pgTable(
  "console_action",
  {
    actionId: uuid("action_id").primaryKey(),
    at: instant("at").notNull().defaultNow(),
    operatorId: uuid("operator_id").notNull(),
    operator: text("operator").notNull(),
    role: text("role").notNull(),
    tenantId: text("tenant_id"),
    /** Method and route pattern: never a URL. */
    action: text("action").notNull(),
    /** Operation, event, ticket, queue or job id. */
    subjectId: text("subject_id"),
    why: text("why"),
    /** HTTP status of the answer; null while it runs, and for ever where the process died meanwhile. */
    status: integer("status"),
    finishedAt: instant("finished_at"),
  },
  (t) => [
    index("console_action_newest").on(t.tenantId, t.actionId),
    index("console_action_subject").on(t.tenantId, t.subjectId).where(sql`${t.subjectId} IS NOT NULL`),
  ],
);

/** Moves of each minute, counted from the history: what charts and counters read instead of the history. */
export const tallyMinute = pgTable(
  "tally_minute",
  {
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    minute: instant("minute").notNull(),
    action: text("action").notNull(),
    /** `none` for a plan. */
    fromState: text("from_state").notNull(),
    toState: text("to_state").notNull(),
    count: integer("count").notNull(),
    /** Time between the two moves of the operation, where one call of the provider lies between: sum and largest, ms. */
    msSum: bigint("ms_sum", { mode: "number" }).notNull(),
    msMax: bigint("ms_max", { mode: "number" }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.minute, t.tenantId, t.connectionId, t.action, t.fromState, t.toState] }),
    check("tally_minute_whole", sql`${t.minute} = date_trunc('minute', ${t.minute})`),
  ],
);

/** Moves since the beginning: the minutes that can't change any more, added up once. */
export const tallyTotal = pgTable(
  "tally_total",
  {
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    action: text("action").notNull(),
    toState: text("to_state").notNull(),
    count: bigint("count", { mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.connectionId, t.action, t.toState] })],
);

/** Up to which minute the minutes have been added to the totals; one row. */
export const tallyMark = pgTable(
  "tally_mark",
  { id: integer("id").primaryKey(), foldedUntil: instant("folded_until").notNull() },
  (t) => [check("tally_mark_one", sql`${t.id} = 1`)],
);

/**
 * Whom and what an operation is about, in a form that tells nothing without the tenant's key: HMAC-SHA256 of a signer's
 * address, or of a document's digest. Written with the plan; a signer's rows go when the payload is erased.
 */
export const operationSubject = pgTable(
  "operation_subject",
  {
    tenantId: text("tenant_id").notNull(),
    kind: text("kind").notNull(),
    token: bytea("token").notNull(),
    operationId: uuid("operation_id").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.kind, t.token, t.operationId] }),
    // No foreign key to the operation: the plan's statement, which inserts both, would lock its row once more for each.
    check("operation_subject_kind", sql`${t.kind} IN ('signer','document')`),
    check("operation_subject_token", sql`octet_length(${t.token}) = 32`),
  ],
);

/** Nothing of this scope is erased until it is released, whatever its age and whoever asks. */
export const legalHold = pgTable(
  "legal_hold",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenant.tenantId),
    legalHoldId: uuid("legal_hold_id").notNull(),
    /** null: everything of the tenant. */
    operationId: uuid("operation_id"),
    placedBy: text("placed_by").notNull(),
    reason: text("reason").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    releasedAt: instant("released_at"),
    releasedBy: text("released_by"),
    releaseReason: text("release_reason"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.legalHoldId] }),
    index("legal_hold_open").on(t.tenantId, t.operationId).where(sql`${t.releasedAt} IS NULL`),
    check(
      "legal_hold_released_by",
      sql`(${t.releasedAt} IS NULL) = (${t.releasedBy} IS NULL) AND (${t.releasedAt} IS NULL) = (${t.releaseReason} IS NULL)`,
    ),
  ],
);

/** What was erased, when, by which rule or on whose request: counts and ids, never what it was. */
export const erasure = pgTable(
  "erasure",
  {
    tenantId: text("tenant_id").notNull(),
    erasureId: uuid("erasure_id").notNull(),
    at: instant("at").notNull().defaultNow(),
    /** `retention`, or `person`. */
    kind: text("kind").notNull(),
    who: text("who").notNull(),
    why: text("why").notNull(),
    /** Of payloads, documents, bodies, subjects erased, and of what had to stay by reason. */
    counts: jsonb("counts").$type<Record<string, number>>().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.erasureId] }),
    check("erasure_kind", sql`${t.kind} IN ('retention','person')`),
  ],
);
