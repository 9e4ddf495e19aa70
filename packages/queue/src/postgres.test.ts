import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { captureLog, collector, describeStore, job } from "./conformance.js";
import { openQueues } from "./connection.js";
import { dispatch, jobsAlive } from "./dispatcher.js";
import { QueueSetupError, QueueUnavailableError } from "./errors.js";
import { migrateQueues } from "./postgres-pool.js";
import { createWorker } from "./worker.js";

const { logger } = captureLog();

async function query(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

describeStore("PostgreSQL", async () => {
  const server = await startPostgres({ durable: false });
  await migrateQueues(server.url);
  // As `countersign migrate` run twice.
  await migrateQueues(server.url);
  return {
    open: () => openQueues({ databaseUrl: server.url, logger }),
    reset: () => query(server.url, "DELETE FROM bullmq.job"),
    stop: () => server.stop(),
  };
});

describe("queues on PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ durable: false });
  });
  afterAll(() => server?.stop());

  it("refuses a database without queue tables, naming the command, instead of spinning", async () => {
    const database = await createTestDatabase(server.url);
    const queues = openQueues({ databaseUrl: database.url, logger });
    expect(await queues.ready(2_000)).toBe(false);
    const creation = createWorker({ queues, queue: "submit", concurrency: 1, handler: async () => {}, logger });
    await expect(creation).rejects.toThrow(QueueSetupError);
    await expect(creation).rejects.toThrow("countersign migrate");
    expect(await dispatch(queues, [job("op-1")])).toEqual({ added: 0, failed: 1 });
    await queues.close();
    await database.drop();
  });

  it("uses QUEUE_DATABASE_URL where the ledger's URL goes through a pooler", async () => {
    const database = await createTestDatabase(server.url);
    await migrateQueues(database.url);
    const queues = openQueues({ databaseUrl: "postgres://nowhere.invalid/x", queueDatabaseUrl: database.url, logger });
    expect(await dispatch(queues, [job("op-1")])).toEqual({ added: 1, failed: 0 });
    await queues.close();
    await database.drop();
  });

  it("goes on by itself after the server was away, and says unavailable meanwhile", async () => {
    const database = await createTestDatabase(server.url);
    await migrateQueues(database.url);
    const queues = openQueues({ databaseUrl: database.url, logger });
    const seen = collector();
    const handler = async (data: Parameters<typeof seen.take>[0]) => seen.take(data);
    const worker = await createWorker({ queues, queue: "submit", concurrency: 2, handler, logger });
    await dispatch(queues, [job("op-1")]);
    await seen.count(1);
    await server.kill();
    expect(await dispatch(queues, [job("op-2")])).toEqual({ added: 0, failed: 1 });
    await expect(jobsAlive(queues, [job("op-2")])).rejects.toThrow(QueueUnavailableError);
    await server.restart();
    await expect.poll(() => dispatch(queues, [job("op-2")]), { timeout: 10_000 }).toEqual({ added: 1, failed: 0 });
    await seen.count(2);
    expect(await worker.close({ graceMs: 5_000 })).toBe(true);
    await queues.close();
    await database.drop();
  });
});
