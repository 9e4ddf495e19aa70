import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, primaryKey, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytea, instant } from "./columns.js";

/**
 * One row per event id and body digest. Written by the ingress before its 2xx, drained by the applier. RECEIVED rows
 * older than a redispatch interval mean that no applier runs; WAITING ones wait for their reference to be bound.
 */
export const webhookInbox = pgTable(
  "webhook_inbox",
  {
    tenantId: text("tenant_id").notNull(),
    inboxId: uuid("inbox_id").notNull(),
    receivedAt: instant("received_at").notNull(),
    connectionId: text("connection_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    providerEventId: text("provider_event_id").notNull(),
    bodySha256: bytea("body_sha256").notNull(),
    status: text("status").notNull(),
    eventType: text("event_type"),
    providerRef: text("provider_ref"),
    operationId: uuid("operation_id"),
    /** A known event id with another body, or a header id that differs from the signed one: stored and flagged. */
    conflicting: boolean("conflicting").notNull().default(false),
    weakId: boolean("weak_id").notNull().default(false),
    /** Its sender or its identity is not proven enough to be believed: the provider is asked before anything is applied. */
    hint: boolean("hint").notNull().default(false),
    dueAt: instant("due_at"),
    dispatches: integer("dispatches").notNull().default(0),
    failures: integer("failures").notNull().default(0),
    waitUntil: instant("wait_until"),
    outcome: text("outcome"),
    appliedAt: instant("applied_at"),
    /** Who replayed it last, and how often that was done. */
    replays: integer("replays").notNull().default(0),
    replayedBy: text("replayed_by"),
    /** Who discarded it, and why. */
    discardedBy: text("discarded_by"),
    discardReason: text("discard_reason"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.inboxId, t.receivedAt] }),
    unique("webhook_inbox_event").on(t.tenantId, t.connectionId, t.providerEventId, t.bodySha256),
    index("webhook_inbox_due").on(t.dueAt).where(sql`${t.dueAt} IS NOT NULL`),
    // The events of a request: those that wait for it to be bound, and those that an operation's page shows.
    index("webhook_inbox_ref").on(t.tenantId, t.connectionId, t.providerRef).where(sql`${t.providerRef} IS NOT NULL`),
    check(
      "inbox_status",
      sql`${t.status} IN ('RECEIVED','WAITING','APPLIED','NO_OP','CONFLICT','QUARANTINED','DEAD','DISCARDED')`,
    ),
    index("webhook_inbox_open").on(t.tenantId, t.inboxId).where(sql`${t.status} IN ('QUARANTINED','DEAD','CONFLICT')`),
    check(
      "inbox_discarded_by_somebody",
      sql`(${t.status} = 'DISCARDED') = (${t.discardedBy} IS NOT NULL AND ${t.discardReason} IS NOT NULL)`,
    ),
    check("inbox_live_rows_are_due", sql`(${t.status} IN ('RECEIVED','WAITING')) = (${t.dueAt} IS NOT NULL)`),
  ],
);

/** Raw bytes, encrypted, apart from the inbox so that they can be erased after their days. */
export const webhookBody = pgTable(
  "webhook_body",
  {
    tenantId: text("tenant_id").notNull(),
    inboxId: uuid("inbox_id").notNull(),
    receivedAt: instant("received_at").notNull(),
    bytes: bytea("bytes").notNull(),
    keyId: text("key_id").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.inboxId, t.receivedAt] })],
);

/** What the provider says of a request. Status is null until the reference is bound to an operation of ours. */
export const contractSigning = pgTable(
  "contract_signing",
  {
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    providerRef: text("provider_ref").notNull(),
    operationId: uuid("operation_id"),
    status: text("status"),
    statusAt: instant("status_at"),
    createdAt: instant("created_at").notNull().defaultNow(),
    updatedAt: instant("updated_at").notNull().defaultNow(),
    /** When its state was last told or last asked for: a request that is not over is asked about from time to time. */
    askedAt: instant("asked_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.connectionId, t.providerRef] }),
    index("contract_signing_asked")
      .on(t.askedAt)
      .where(sql`${t.status} IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED')`),
    index("contract_signing_operation").on(t.tenantId, t.operationId),
    check(
      "signing_status",
      sql`${t.status} IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED','COMPLETED','DECLINED','VOIDED','EXPIRED','DISCARDED')`,
    ),
    check("signing_status_needs_operation", sql`${t.status} IS NULL OR ${t.operationId} IS NOT NULL`),
  ],
);
