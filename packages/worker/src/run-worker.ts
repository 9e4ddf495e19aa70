import { hostname } from "node:os";
import { beat, Ledger, type ProcessIdentity, sayGoodbye } from "@countersign/ledger";
import {
  checkRedisPolicy,
  createWorker,
  type JobHandler,
  openQueues,
  type QueueName,
  type Queues,
  type QueueWorker,
} from "@countersign/queue";
import {
  type Check,
  CheckFailed,
  checkWindows,
  commonConfig,
  createLogger,
  createMetrics,
  type HealthServer,
  integerSetting,
  type Logger,
  loadConfig,
  type Metrics,
  newId,
  runProcess,
  settingsOrExit,
  startHealthServer,
  type Windows,
  windows,
} from "@countersign/runtime";
import { type DueLoop, startDueLoop } from "./due-loop.js";
import { Permits } from "./permits.js";
import { ProviderHealth } from "./provider-health.js";
import { type RetentionTimer, startRetention } from "./retention-timer.js";

/** What every worker process reads from its environment. */
export const workerConfig = {
  ...commonConfig,
  ...windows,
  DATABASE_POOL: integerSetting("connections", { min: 1, max: 200, default: 10 }),
  GRACE_MS: integerSetting("milliseconds", { min: 100, max: 600_000, default: 40_000 }),
} as const;

/** The parts that a handler works with. */
export interface WorkerParts {
  ledger: Ledger;
  queues: Queues;
  logger: Logger;
  metrics: Metrics;
  windows: Windows;
  /** Stands on every claim, so that this process's heartbeat vouches for its leases. */
  processId: string;
  permits: Permits;
  health: ProviderHealth;
}

export interface WorkerProcess {
  name: string;
  queue: QueueName;
  /** Jobs side by side. */
  concurrency: number;
  /** Makes the handler once the parts are open. */
  handler(parts: WorkerParts): JobHandler;
  /** Erases what has outlived its days, once an hour; false when left out. */
  retention?: boolean;
  /** Closes what the handler opened. */
  onStop?(): Promise<void>;
}

/** Beyond the lease nothing that a job still does may count, so it need not hold its place either. */
const jobMarginMs = 10_000;

/** A job that hangs longer than any lease fails; its row has long been swept by then. */
class JobOverdueError extends Error {
  override readonly name = "JobOverdueError";
  readonly code = "job-overdue";
}

function bounded(handler: JobHandler, limitMs: number): JobHandler {
  return async (job, context) => {
    let timer: NodeJS.Timeout | undefined;
    const overdue = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new JobOverdueError(`longer than ${limitMs} ms`)), limitMs);
    });
    try {
      await Promise.race([handler(job, context), overdue]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Everything a worker process opens, in order; closed in reverse by `stop`. */
class Running {
  readonly ledger: Ledger;
  readonly queues: Queues;
  worker: QueueWorker | undefined;
  loop: DueLoop | undefined;
  retention: RetentionTimer | undefined;
  health: HealthServer | undefined;
  heartbeat: NodeJS.Timeout | undefined;
  constructor(ledger: Ledger, queues: Queues) {
    this.ledger = ledger;
    this.queues = queues;
  }
}

/**
 * Runs one worker process: its queue's worker, the due loop, a heartbeat, `/healthz`, `/readyz`, `/metrics`, and a stop
 * that takes nothing new, finishes what is in flight and exits.
 */
export function runWorker(options: WorkerProcess): void {
  const config = settingsOrExit(() => {
    const settings = loadConfig(workerConfig, process.env, { name: options.name });
    checkWindows(settings, { name: options.name });
    return settings;
  });
  const logger = createLogger({ name: options.name, level: config.LOG_LEVEL });
  const metrics = createMetrics(options.name);
  const jobs = metrics.counter({
    name: "countersign_jobs_total",
    help: "Jobs that ended, by queue and outcome",
    labels: ["queue", "outcome"],
  });
  const transitions = metrics.counter({
    name: "countersign_transitions_total",
    help: "State transitions that this process made, by edge of the state machine; sweep: leases that ended",
    labels: ["edge"],
  });
  const handOverFailures = metrics.counter({
    name: "countersign_due_hand_over_failures_total",
    help: "Due rows that the due loop could not hand to their queue; they stay due",
  });
  const running = new Running(
    new Ledger({
      databaseUrl: config.DATABASE_URL,
      encryptionKey: config.COUNTERSIGN_ENCRYPTION_KEY,
      prepare: config.DATABASE_PREPARE,
      maxConnections: Math.max(config.DATABASE_POOL, Math.ceil(options.concurrency / 2)),
      applicationName: `countersign-${options.name}`,
      onTransition: (edge, count) => transitions.inc({ edge }, count),
    }),
    openQueues({
      redisUrl: config.REDIS_URL,
      databaseUrl: config.DATABASE_URL,
      queueDatabaseUrl: config.QUEUE_DATABASE_URL,
      logger,
    }),
  );
  const { ledger, queues } = running;
  const identity: ProcessIdentity = { processId: newId(), kind: options.name, host: hostname(), pid: process.pid };

  runProcess({
    name: options.name,
    logger,
    graceMs: config.GRACE_MS,
    start: async () => {
      await queues.ready(5_000);
      if (config.REDIS_URL !== undefined) await checkPolicy(config.REDIS_URL, config, logger);
      const parts: WorkerParts = {
        ledger,
        queues,
        logger,
        metrics,
        windows: config,
        processId: identity.processId,
        permits: new Permits(ledger),
        health: new ProviderHealth(
          ledger,
          { failures: config.CIRCUIT_FAILURES, probeMs: config.CIRCUIT_PROBE_MS },
          logger,
        ),
      };
      // Before the first claim: a process that dies in its first second must be missed, too.
      const heart = await startHeartbeat(ledger, identity, config.HEARTBEAT_MS, logger);
      running.heartbeat = heart.timer;
      running.worker = await createWorker({
        queues,
        queue: options.queue,
        concurrency: options.concurrency,
        handler: bounded(options.handler(parts), config.LEASE_MS + jobMarginMs),
        logger,
        onFinished: (outcome) => jobs.inc({ queue: options.queue, outcome }),
      });
      running.loop = startDueLoop({
        ...parts,
        sweepMs: config.SWEEP_MS,
        redispatchMs: config.REDISPATCH_MS,
        signingPollMs: config.SIGNING_POLL_MS,
        dead: { afterMs: config.WORKER_DEAD_MS, heardMs: heart.heardMs },
        onPass: ({ swept, failed }) => {
          if (swept > 0) transitions.inc({ edge: "sweep" }, swept);
          if (failed > 0) handOverFailures.inc(failed);
        },
      });
      if (options.retention === true) {
        running.retention = startRetention({
          ledger,
          logger,
          payloadDays: config.PAYLOAD_DAYS,
          documentDays: config.DOCUMENT_DAYS,
          bodyDays: config.WEBHOOK_BODY_DAYS,
        });
      }
      running.health = await startHealthServer({
        host: config.HOST,
        port: config.PORT,
        metrics,
        checks: readyChecks(running, config.SWEEP_MS),
      });
      logger.info({ port: running.health.port, queue: options.queue, backend: queues.kind }, "listening");
    },
    stop: async () => {
      clearInterval(running.heartbeat);
      running.retention?.stop();
      await running.loop?.stop();
      const finished = await running.worker?.close({ graceMs: Math.max(100, config.GRACE_MS - 3_000) });
      if (finished === false) logger.warn("jobs did not end within the grace: their rows' leases bring them back");
      await options.onStop?.();
      await running.health?.close();
      await sayGoodbye(ledger, identity.processId).catch((error: unknown) =>
        logger.warn({ err: error }, "could not say goodbye: the heartbeat will end by itself"),
      );
      await queues.close();
      await ledger.close(1_000);
    },
  });
}

/** Refuses a Redis that may evict jobs and locks; "cannot tell" is said, and is not "ok". */
async function checkPolicy(
  redisUrl: string,
  config: { COUNTERSIGN_ALLOW_REDIS_EVICTION: boolean },
  logger: Logger,
): Promise<void> {
  const { verdict } = await checkRedisPolicy(redisUrl, { allowEviction: config.COUNTERSIGN_ALLOW_REDIS_EVICTION });
  if (verdict !== "ok") logger.warn({ policy: verdict }, "redis eviction policy");
}

interface Heartbeat {
  timer: NodeJS.Timeout;
  /** For how long, ms, every heartbeat has got through in time. */
  heardMs(): number;
}

/** Registers the process, then says that it lives. A gap begins the count of `heardMs` anew. */
async function startHeartbeat(
  ledger: Ledger,
  identity: ProcessIdentity,
  everyMs: number,
  logger: Logger,
): Promise<Heartbeat> {
  await beat(ledger, identity);
  let failing = false;
  let last = performance.now();
  let since = last;
  const once = async (): Promise<void> => {
    try {
      await beat(ledger, identity);
      failing = false;
      const now = performance.now();
      if (now - last > everyMs * 3) since = now;
      last = now;
    } catch (error) {
      if (!failing) logger.warn({ err: error }, "heartbeat failed");
      failing = true;
      since = performance.now();
    }
  };
  const timer = setInterval(() => void once(), everyMs);
  return { timer, heardMs: () => (performance.now() - last > everyMs * 3 ? 0 : performance.now() - since) };
}

/** Progress, not a ping: it can claim, it has taken from its queue, and its due loop goes round. */
function readyChecks(running: Running, sweepMs: number): Check[] {
  const checks: Check[] = [
    {
      name: "claim",
      run: async () => {
        await running.ledger.sql`SELECT 1 FROM signing_operation LIMIT 1`;
      },
    },
    running.queues.check,
    {
      name: "due-loop",
      run: async () => {
        if ((running.loop?.idleMs() ?? Number.POSITIVE_INFINITY) > sweepMs * 3 + 5_000)
          throw new CheckFailed("no-progress");
      },
    },
  ];
  if (running.worker !== undefined) checks.push(running.worker.check);
  return checks;
}
