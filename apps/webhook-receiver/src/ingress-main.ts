import { Ledger } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import { openQueues } from "@countersign/queue";
import { createLogger, createMetrics, loadConfig, runProcess, settingsOrExit } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import { ingressConfig } from "./config.js";
import { inboxCheck } from "./inbox-check.js";
import { buildIngress } from "./ingress.js";
import { ingressMetrics } from "./ingress-metrics.js";
import { createReceiver } from "./receive.js";

const name = "webhook-ingress";
const config = settingsOrExit(() => loadConfig(ingressConfig, process.env, { name }));
const logger = createLogger({ name, level: config.LOG_LEVEL });
const registry = createMetrics(name);
const metrics = ingressMetrics(registry);
const ledger = new Ledger({
  databaseUrl: config.DATABASE_URL,
  encryptionKey: config.COUNTERSIGN_ENCRYPTION_KEY,
  prepare: config.DATABASE_PREPARE,
  maxConnections: config.DATABASE_POOL,
  applicationName: `countersign-${name}`,
});
const queues = openQueues({
  redisUrl: config.REDIS_URL,
  databaseUrl: config.DATABASE_URL,
  queueDatabaseUrl: config.QUEUE_DATABASE_URL,
  logger,
});
const app = buildIngress({
  receive: createReceiver({
    ledger,
    providerByName,
    handOff: (job) => handOver(queues, [job]),
    logger,
    metrics,
    endpointCacheMs: config.WEBHOOK_ENDPOINT_CACHE_MS,
  }),
  logger,
  registry,
  metrics,
  checks: [inboxCheck(ledger)],
  bodyLimit: config.WEBHOOK_BODY_LIMIT,
  receiveTimeoutMs: config.WEBHOOK_RECEIVE_TIMEOUT_MS,
  ackTimeoutMs: config.WEBHOOK_ACK_TIMEOUT_MS,
  maxInFlight: config.WEBHOOK_MAX_IN_FLIGHT,
});

runProcess({
  name,
  logger,
  graceMs: config.GRACE_MS,
  start: async () => {
    const address = await app.listen({ host: config.HOST, port: config.PORT });
    logger.info({ port: Number(new URL(address).port), backend: queues.kind }, "listening");
  },
  stop: async () => {
    await app.close();
    await queues.close();
    await ledger.close(1_000);
  },
});
