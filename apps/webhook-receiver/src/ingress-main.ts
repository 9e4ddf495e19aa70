import { Ledger, reportSilence } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import { openQueues } from "@countersign/queue";
import { createLogger, createMetrics, loadConfig, runProcess, settingsOrExit } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import { ingressConfig } from "./config.js";
import { EndpointWatch } from "./endpoint-watch.js";
import { inboxCheck } from "./inbox-check.js";
import { buildIngress } from "./ingress.js";
import { IngressLife } from "./ingress-life.js";
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
    handOff: (jobs) => handOver(queues, [...jobs]),
    logger,
    metrics,
    endpointCacheMs: config.WEBHOOK_ENDPOINT_CACHE_MS,
    bodyLimit: config.WEBHOOK_BODY_LIMIT,
    parallelCommits: Math.min(config.WEBHOOK_PARALLEL_COMMITS, Math.max(1, config.DATABASE_POOL - 1)),
    watch: new EndpointWatch({ count: 10, forMs: config.WEBHOOK_REFUSING_MS }, (silence) =>
      reportSilence(ledger.sql, silence),
    ),
  }),
  logger,
  registry,
  metrics,
  checks: [inboxCheck(ledger)],
  bodyLimit: config.WEBHOOK_BODY_LIMIT,
  receiveTimeoutMs: config.WEBHOOK_RECEIVE_TIMEOUT_MS,
  ackTimeoutMs: config.WEBHOOK_ACK_TIMEOUT_MS,
  maxInFlight: config.WEBHOOK_MAX_IN_FLIGHT,
  maxBytesInFlight: config.WEBHOOK_MAX_BYTES_IN_FLIGHT,
});
const life = new IngressLife({ ledger, logger, everyMs: config.HEARTBEAT_MS, gapMs: config.WEBHOOK_GAP_MS });

runProcess({
  name,
  logger,
  graceMs: config.GRACE_MS,
  start: async () => {
    await life.start();
    const address = await app.listen({ host: config.HOST, port: config.PORT });
    logger.info({ port: Number(new URL(address).port), backend: queues.kind }, "listening");
  },
  stop: async () => {
    await app.close();
    await life.stop();
    await queues.close();
    await ledger.close(1_000);
  },
});
