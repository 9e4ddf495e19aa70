import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forgetFolder, type RedisServer, RedisUnavailableError, startRedis, watchFolder } from "@countersign/devstack";
import { createConnection, createTenant, createWebhookEndpoint, Ledger, migrate } from "@countersign/ledger";
import { migrateQueues } from "@countersign/queue";
import { bareEnvironment, stackEnvironment } from "../child-env.js";
import type { Cleanup } from "../cleanup.js";
import { startCountedPostgres } from "./counted-postgres.js";
import { type BenchEvent, makeEvents } from "./deliveries.js";

const tenantId = "bench";
const connectionId = "main";

/** What every measurement of webhooks works on. */
export interface WebhookScene {
  readonly ledger: Ledger;
  readonly databaseUrl: string;
  /** Its append-only file is synced each second; undefined where no Redis is to be had: the queues run on PostgreSQL. */
  readonly redisUrl: string | undefined;
  /** The environment of every process measured. */
  readonly env: Readonly<Record<string, string>>;
  readonly logDir: string;
  readonly secret: string;
  /** Of the one endpoint. */
  readonly path: string;
}

/** A fresh durable stack with one tenant and one endpoint; `cleanup` ends it. @throws the errors of `startPostgres` */
export async function openWebhookScene(cleanup: Cleanup): Promise<WebhookScene> {
  const logDir = await mkdtemp(join(tmpdir(), "countersign-bench-"));
  watchFolder(logDir);
  cleanup.add(async () => {
    await rm(logDir, { recursive: true, force: true });
    forgetFolder(logDir);
  });
  const server = await startCountedPostgres();
  cleanup.add(() => server.stop());
  const redis = await durableRedis();
  if (redis !== undefined) cleanup.add(() => redis.stop());
  await migrate(server.url);
  if (redis === undefined) await migrateQueues(server.url);
  const encryptionKey = randomBytes(32).toString("base64");
  const ledger = new Ledger({ databaseUrl: server.url, encryptionKey, maxConnections: 2 });
  cleanup.add(() => ledger.close(1_000));
  await ledger.sql.unsafe("CREATE EXTENSION pg_stat_statements");
  // Its lumps of WAL would fall to whoever is measured at the minute; it is done between the measurements.
  await ledger.sql.unsafe("ALTER SYSTEM SET autovacuum = off");
  await ledger.sql`SELECT pg_reload_conf()`;
  const secret = `whsec_${randomBytes(24).toString("base64url")}`;
  await createTenant(ledger, { tenantId, ticketOwners: { default: "bench" } });
  // Nothing here calls the provider.
  const provider = { provider: "wesign", baseUrl: "http://127.0.0.1:9", credential: "none" };
  await createConnection(ledger, { tenantId, connectionId, ...provider });
  const { path } = await createWebhookEndpoint(ledger, { tenantId, connectionId, scheme: "elchi", secret });
  const stack = stackEnvironment({ databaseUrl: server.url, redisUrl: redis?.url }, encryptionKey);
  const env = { ...bareEnvironment(), ...stack, LOG_LEVEL: "warn" };
  return { ledger, databaseUrl: server.url, redisUrl: redis?.url, env, logDir, secret, path };
}

/** Never the one that REDIS_URL names: nobody knows how durable that is, nor whose it is. */
async function durableRedis(): Promise<RedisServer | undefined> {
  try {
    return await startRedis({ appendOnly: true, env: { ...process.env, REDIS_URL: "" } });
  } catch (error) {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  }
}

/** Events of requests that stand as SENT and belong to operations: each can be applied as soon as it is stored. */
export async function eventsOfBoundRequests(scene: WebhookScene, count: number): Promise<BenchEvent[]> {
  const events = makeEvents(count);
  const references = JSON.stringify(events.map(({ providerRef }) => providerRef));
  await scene.ledger.sql`
    INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status, status_at)
    SELECT ${tenantId}, ${connectionId}, value, gen_random_uuid(), 'SENT', now()
    FROM jsonb_array_elements_text(${references}::text::jsonb)`;
  return events;
}
