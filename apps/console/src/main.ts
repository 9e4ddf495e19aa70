import { fileURLToPath } from "node:url";
import { Waiting } from "@countersign/api";
import { planningParts } from "@countersign/client/transaction";
import { Ledger, migrationState, postgresDocumentStore, tally } from "@countersign/ledger";
import { openQueues } from "@countersign/queue";
import {
  CheckFailed,
  ConfigError,
  createLogger,
  createMetrics,
  loadConfig,
  runProcess,
  settingsOrExit,
} from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import type { FastifyInstance } from "fastify";
import { consoleConfig } from "./config.js";
import { isLoopback } from "./loopback.js";
import { repeat } from "./repeat.js";
import { buildConsole } from "./server.js";
import { SessionCookies } from "./session-cookie.js";

const name = "console";
const config = settingsOrExit(() => {
  const read = loadConfig(consoleConfig, process.env, { name });
  if (read.CONSOLE_AUTH === "none" && !isLoopback(read.HOST)) {
    throw new ConfigError(name, [
      {
        variable: "CONSOLE_AUTH",
        problem: "none lets everybody in who reaches HOST, which is not loopback",
        remedy: "Leave CONSOLE_AUTH out (token) and make tokens with countersign console-access add",
      },
    ]);
  }
  return read;
});
const logger = createLogger({ name, level: config.LOG_LEVEL });
const metrics = createMetrics(name);
const ledger = new Ledger({
  databaseUrl: config.DATABASE_URL,
  encryptionKey: config.COUNTERSIGN_ENCRYPTION_KEY,
  prepare: config.DATABASE_PREPARE,
  maxConnections: config.DATABASE_POOL,
  applicationName: "countersign-console",
});
const queues = openQueues({
  redisUrl: config.REDIS_URL,
  databaseUrl: config.DATABASE_URL,
  queueDatabaseUrl: config.QUEUE_DATABASE_URL,
  logger,
});
const waiting = new Waiting(ledger, logger);
const tallyMs = 10_000;
let app: FastifyInstance | undefined;
let stopTally = async (): Promise<void> => undefined;

runProcess({
  name,
  logger,
  graceMs: config.GRACE_MS,
  start: async () => {
    app = await buildConsole({
      ledger,
      documents: postgresDocumentStore(ledger),
      planning: planningParts(ledger),
      waiting,
      // Failed hand-overs need nothing: the due loop finds their rows.
      handOver: (jobs) => void handOver(queues, jobs),
      logger,
      metrics,
      maxDocumentBytes: 1_024,
      quiescenceMs: config.QUIESCENCE_MS,
      queues,
      cookies: new SessionCookies(ledger.keyring.derive("console sessions")),
      everybody:
        config.CONSOLE_AUTH === "none"
          ? {
              operatorId: "00000000-0000-4000-8000-000000000000",
              name: "whoever-is-at-this-machine",
              role: "operator",
              tenants: null,
            }
          : undefined,
      sessionHours: config.CONSOLE_SESSION_HOURS,
      secureCookie: config.CONSOLE_SECURE_COOKIE === "true",
      page: fileURLToPath(new URL("../ui/dist", import.meta.url)),
      checks: [
        {
          name: "ledger",
          run: async () => {
            if ((await migrationState(config.DATABASE_URL)).applied === 0) throw new CheckFailed("not-migrated");
            await ledger.sql`SELECT 1 FROM console_operator LIMIT 1`;
          },
          timeoutMs: 3_000,
        },
      ],
    });
    await app.listen({ host: config.HOST, port: config.PORT });
    const [address] = app.addresses();
    logger.info({ port: typeof address === "object" ? address.port : config.PORT }, "listening");
    stopTally = repeat(
      tallyMs,
      async () => void (await tally(ledger)),
      (error) => {
        logger.warn({ err: error }, "the tally could not be brought up to date");
      },
    );
  },
  stop: async () => {
    waiting.stop();
    await stopTally();
    await app?.close();
    await queues.close();
    await ledger.close(2_000);
  },
});
