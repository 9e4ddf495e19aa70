import { type BackendFactory, createPostgresBackend, type IQueueBackend, isPgPool, runMigrations } from "bullmq";
import { Client, Pool } from "pg";
import { QueueSetupError } from "./errors.js";

/** The schema of BullMQ's tables, beside the ledger's. */
export const queueSchema = "bullmq";

/**
 * Connections for BullMQ. `search_path` is set by a startup parameter, which poolers refuse: the URL must go past them.
 * @param max most connections; each worker keeps one of them for notifications
 * @param timeoutMs how long a caller waits for a connection
 */
export function queuePool(databaseUrl: string, max: number, timeoutMs: number): Pool {
  return new Pool({
    connectionString: databaseUrl,
    options: `-c search_path=${queueSchema}`,
    application_name: "countersign-queue",
    max,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    idleTimeoutMillis: 30_000,
  });
}

/** The BullMQ backend on a pool of ours, which is ours alone to end. */
export function postgresBackend(pool: Pool): BackendFactory<IQueueBackend> {
  // BullMQ declares the part of pg it uses in its own words; its guard is what decides at run time as well.
  if (!isPgPool(pool)) throw new QueueSetupError("queue-pool", "BullMQ does not take this version of pg's pool.");
  return (name, options, extra) => createPostgresBackend(name, { ...options, connection: pool }, extra);
}

/**
 * Creates or upgrades BullMQ's schema, in one transaction under an advisory lock. Part of `countersign migrate`; no
 * process does it at its start.
 */
export async function migrateQueues(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl, application_name: "countersign-migrate" });
  await client.connect();
  try {
    await runMigrations(client, queueSchema);
  } finally {
    await client.end();
  }
}

/**
 * Refuses a database without BullMQ's tables: workers on it would fail in an endless loop.
 * @throws QueueSetupError
 */
export async function requireQueueSchema(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ present: boolean }>("SELECT to_regclass($1) IS NOT NULL AS present", [
    `${queueSchema}.job`,
  ]);
  if (rows[0]?.present !== true) {
    throw new QueueSetupError(
      "queue-schema",
      "The database has no queue tables. Run `countersign migrate`, or set REDIS_URL to queue on Redis.",
    );
  }
}
