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
  real,
  text,
  unique,
  uuid,
} from "drizzle-orm/pg-core";
import { bytea, instant } from "./columns.js";

/**
 * Written by an administrator, read by everyone. `ticket_owners` names the team for each ticket kind: a tenant without
 * one for every kind is refused by the database, since a ticket that nobody owns is a slower way to lose work.
 * `data_key` encrypts this tenant's bytes and is itself wrapped by the key in the environment (`key_id`).
 */
export const tenant = pgTable(
  "tenant",
  {
    tenantId: text("tenant_id").primaryKey(),
    ticketOwners: jsonb("ticket_owners").$type<Record<string, string>>().notNull(),
    thresholds: jsonb("thresholds").$type<Record<string, number>>().notNull(),
    dataKey: bytea("data_key").notNull(),
    keyId: text("key_id").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
  },
  (t) => [
    check("tenant_id_form", sql`${t.tenantId} ~ '^[a-z0-9][a-z0-9_-]{0,62}$'`),
    check(
      "tenant_owns_every_ticket_kind",
      sql`${t.ticketOwners} ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired','endpoint-silent']`,
    ),
    check(
      "tenant_has_every_threshold",
      sql`${t.thresholds} ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired','endpoint-silent','age-unknown','age-planned','age-waiting','age-declined','age-attempts','age-received','age-endpoint']`,
    ),
  ],
);

/** Bearer keys of producers; only the SHA-256 of the key is stored. */
export const apiKey = pgTable(
  "api_key",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenant.tenantId),
    keyId: uuid("key_id").notNull(),
    keyHash: bytea("key_hash").notNull(),
    name: text("name").notNull(),
    scopes: text("scopes").array().notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    revokedAt: instant("revoked_at"),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.keyId] }), unique("api_key_hash").on(t.keyHash)],
);

/** A tenant's account at a provider: encrypted credential, pause, hold, and what has been verified about its lookups. */
export const providerConnection = pgTable(
  "provider_connection",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenant.tenantId),
    connectionId: text("connection_id").notNull(),
    provider: text("provider").notNull(),
    baseUrl: text("base_url").notNull(),
    credential: bytea("credential").notNull(),
    keyId: text("key_id").notNull(),
    isDefault: boolean("is_default").notNull().default(false),
    /** May a lookup by our metadata be used at all? */
    metadataLookup: boolean("metadata_lookup").notNull().default(true),
    /** When `connection verify` (or a named person) has shown that the lookup finds and that it can be empty. */
    lookupVerifiedAt: instant("lookup_verified_at"),
    lookupVerification: jsonb("lookup_verification").$type<Record<string, unknown>>(),
    pausedUntil: instant("paused_until"),
    pauseReason: text("pause_reason"),
    /** No longer read: holds have a table of their own. Kept for a release, since older code reads it. */
    heldAt: instant("held_at"),
    heldBy: text("held_by"),
    /** Calls per second, submissions and lookups alike; null: as fast as the workers are. */
    ratePerSecond: real("rate_per_second"),
    /** Calls in a row that found the provider down. */
    circuitFailures: integer("circuit_failures").notNull().default(0),
    /** Since when nobody but a probe calls. */
    circuitOpenedAt: instant("circuit_opened_at"),
    createdAt: instant("created_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.connectionId] }),
    check("connection_rate", sql`${t.ratePerSecond} IS NULL OR ${t.ratePerSecond} > 0`),
    check("connection_id_form", sql`${t.connectionId} ~ '^[a-z0-9][a-z0-9_-]{0,62}$'`),
  ],
);

/** When the next call of a rate-limited connection may be made; apart from the connection, since every block writes it. */
export const connectionPermit = pgTable(
  "connection_permit",
  {
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    nextAt: instant("next_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.connectionId] })],
);

/** Nothing of this scope is sent until it is released or over: planning goes on. */
export const hold = pgTable(
  "hold",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenant.tenantId),
    holdId: uuid("hold_id").notNull(),
    /** null: every connection. */
    connectionId: text("connection_id"),
    /** null: every action. */
    action: text("action"),
    heldBy: text("held_by").notNull(),
    reason: text("reason").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    endsAt: instant("ends_at"),
    releasedAt: instant("released_at"),
    releasedBy: text("released_by"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.holdId] }),
    index("hold_open").on(t.tenantId).where(sql`${t.releasedAt} IS NULL`),
    check("hold_action", sql`${t.action} IN ('SEND','VOID','RESEND','FINALIZE')`),
    check("hold_released_by", sql`(${t.releasedAt} IS NULL) = (${t.releasedBy} IS NULL)`),
  ],
);

/** What a tenant has decided beforehand, in writing: acts as a named actor wherever it applies. */
export const tenantPolicy = pgTable(
  "tenant_policy",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenant.tenantId),
    policyId: uuid("policy_id").notNull(),
    policy: text("policy").notNull(),
    action: text("action").notNull(),
    /** null: every connection. */
    connectionId: text("connection_id"),
    writtenBy: text("written_by").notNull(),
    reason: text("reason").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    revokedAt: instant("revoked_at"),
    revokedBy: text("revoked_by"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.policyId] }),
    index("tenant_policy_in_force").on(t.tenantId, t.action).where(sql`${t.revokedAt} IS NULL`),
    check(
      "tenant_policy_name",
      sql`${t.policy} IN ('treat-unprovable-as-done','accept-duplicate-and-void','accept-replay-risk')`,
    ),
    check("tenant_policy_action", sql`${t.action} IN ('SEND','VOID','RESEND','FINALIZE')`),
    check("tenant_policy_revoked_by", sql`(${t.revokedAt} IS NULL) = (${t.revokedBy} IS NULL)`),
  ],
);

/** The unguessable id in a webhook URL maps to tenant, connection and scheme; nothing in a body ever does. */
export const webhookEndpoint = pgTable(
  "webhook_endpoint",
  {
    endpointId: text("endpoint_id").primaryKey(),
    tenantId: text("tenant_id").notNull(),
    connectionId: text("connection_id").notNull(),
    scheme: text("scheme").notNull(),
    /** null: compressed bodies are refused; `content`: what was signed is the unpacked body; `wire`: the bytes as sent. */
    gzip: text("gzip"),
    createdAt: instant("created_at").notNull().defaultNow(),
    disabledAt: instant("disabled_at"),
    /** Kept to half a minute, so that a busy endpoint's row is not written by every delivery. */
    lastVerifiedAt: instant("last_verified_at"),
    /** Since when a change that nobody told us of is known; cleared by the next verified delivery. */
    suspectSince: instant("suspect_since"),
  },
  (t) => [
    index("webhook_endpoint_connection").on(t.tenantId, t.connectionId),
    check("endpoint_gzip", sql`${t.gzip} IN ('content','wire')`),
    foreignKey({
      columns: [t.tenantId, t.connectionId],
      foreignColumns: [providerConnection.tenantId, providerConnection.connectionId],
    }),
  ],
);

/** Several may be valid at once: rotation. */
export const webhookSecret = pgTable(
  "webhook_secret",
  {
    endpointId: text("endpoint_id")
      .notNull()
      .references(() => webhookEndpoint.endpointId),
    secretId: uuid("secret_id").notNull(),
    secret: bytea("secret").notNull(),
    keyId: text("key_id").notNull(),
    createdAt: instant("created_at").notNull().defaultNow(),
    /** From then on it verifies nothing; may lie ahead. */
    retiredAt: instant("retired_at"),
    /** Kept to half a minute. */
    lastVerifiedAt: instant("last_verified_at"),
  },
  (t) => [primaryKey({ columns: [t.endpointId, t.secretId] })],
);

/** Heartbeats: which processes run, and since when a silent one is silent. */
export const workerProcess = pgTable(
  "worker_process",
  {
    processId: uuid("process_id").primaryKey(),
    kind: text("kind").notNull(),
    host: text("host").notNull(),
    pid: integer("pid").notNull(),
    startedAt: instant("started_at").notNull().defaultNow(),
    heartbeatAt: instant("heartbeat_at").notNull().defaultNow(),
    stoppedAt: instant("stopped_at"),
  },
  (t) => [index("worker_process_alive").on(t.heartbeatAt).where(sql`${t.stoppedAt} IS NULL`)],
);
