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
      sql`${t.ticketOwners} ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired']`,
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
    heldAt: instant("held_at"),
    heldBy: text("held_by"),
    createdAt: instant("created_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.connectionId] }),
    check("connection_id_form", sql`${t.connectionId} ~ '^[a-z0-9][a-z0-9_-]{0,62}$'`),
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
    createdAt: instant("created_at").notNull().defaultNow(),
    disabledAt: instant("disabled_at"),
    lastVerifiedAt: instant("last_verified_at"),
  },
  (t) => [
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
    retiredAt: instant("retired_at"),
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
