import { Waiting } from "@countersign/api";
import { planningParts } from "@countersign/client/transaction";
import { type DueJob, Ledger, migrationState, postgresDocumentStore } from "@countersign/ledger";
import { openQueues } from "@countersign/queue";
import { CheckFailed, createLogger, createMetrics, loadConfig, runProcess, settingsOrExit } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import type { FastifyInstance } from "fastify";
import { authenticator } from "./authenticate.js";
import { enqueuerConfig } from "./config.js";
import { keepDocuments } from "./keep-documents.js";
import { buildServer } from "./server.js";

const name = "enqueuer";
const config = settingsOrExit(() => loadConfig(enqueuerConfig, process.env, { name }));
const logger = createLogger({ name, level: config.LOG_LEVEL });
const metrics = createMetrics(name);
const ledger = new Ledger({
  databaseUrl: config.DATABASE_URL,
  encryptionKey: config.COUNTERSIGN_ENCRYPTION_KEY,
  prepare: config.DATABASE_PREPARE,
  maxConnections: config.DATABASE_POOL,
  applicationName: "countersign-enqueuer",
});
const queues = openQueues({
  redisUrl: config.REDIS_URL,
  databaseUrl: config.DATABASE_URL,
  queueDatabaseUrl: config.QUEUE_DATABASE_URL,
  logger,
});
const waiting = new Waiting(ledger, logger);
const lost = metrics.counter({
  name: "countersign_hand_over_failures_total",
  help: "Jobs that could not be handed over at once; the due loop finds their rows",
});

/** Jobs on their way to the queue; beyond it the due loop is the better way. */
const maxHandingOver = 500;
let handingOver = 0;

function handOverSoon(jobs: DueJob[]): void {
  if (jobs.length === 0) return;
  if (handingOver >= maxHandingOver) {
    lost.inc(jobs.length);
    return;
  }
  handingOver += jobs.length;
  handOver(queues, jobs)
    .then(({ failed }) => lost.inc(failed))
    .finally(() => {
      handingOver -= jobs.length;
    });
}

let app: FastifyInstance | undefined;

runProcess({
  name,
  logger,
  graceMs: config.GRACE_MS,
  start: async () => {
    const documents = keepDocuments(postgresDocumentStore(ledger));
    app = await buildServer({
      ledger,
      documents,
      planning: { ...planningParts(ledger), document: documents.get },
      authenticate: authenticator(ledger),
      waiting,
      handOver: handOverSoon,
      logger,
      metrics,
      maxDocumentBytes: config.MAX_DOCUMENT_BYTES,
      quiescenceMs: config.QUIESCENCE_MS,
      checks: [
        {
          name: "plan",
          run: async () => {
            if ((await migrationState(config.DATABASE_URL)).applied === 0) throw new CheckFailed("not-migrated");
            await ledger.sql`SELECT 1 FROM signing_operation LIMIT 1`;
          },
          timeoutMs: 3_000,
        },
      ],
    });
    await app.listen({ host: config.HOST, port: config.PORT });
    const [address] = app.addresses();
    const port = typeof address === "object" ? address.port : config.PORT;
    logger.info({ port, backend: queues.kind }, "listening");
  },
  stop: async () => {
    waiting.stop();
    await app?.close();
    await queues.close();
    await ledger.close(2_000);
  },
});
