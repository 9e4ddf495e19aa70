import { setTimeout as pause } from "node:timers/promises";
import { type Check, CheckFailed, type Logger, safeError } from "@countersign/runtime";
import { type BackendFactory, createRedisBackend, type IQueueBackend, type Job, Worker } from "bullmq";
import { type Queues, redisPrefix, settledWithin, type WorkerClients } from "./connection.js";
import { InvalidJobError, QueueError } from "./errors.js";
import { postgresBackend, queuePool, requireQueueSchema } from "./postgres-pool.js";
import { type JobData, jobData, type QueueName } from "./queues.js";
import { telemetry } from "./telemetry.js";

/** Does a job's work. What it throws fails the job, once; the ledger decides whether there is another. */
export type JobHandler = (job: JobData, context: JobContext) => Promise<void>;

export interface JobContext {
  /** Aborted when the process's grace is over: whatever is still running will not be recorded by it. */
  readonly signal: AbortSignal;
}

export interface WorkerSettings {
  readonly queues: Queues;
  readonly queue: QueueName;
  /** Jobs worked on side by side, from 1. */
  readonly concurrency: number;
  readonly handler: JobHandler;
  readonly logger: Logger;
  /** Told of every job that ended, for metrics. */
  readonly onFinished?: (outcome: "completed" | "failed" | "invalid") => void;
}

export interface QueueWorker {
  /** Jobs being worked on now. */
  readonly active: number;
  /** Whether it has taken from its queue, or found it empty, within the last `withinMs` (20 s when left out). */
  healthy(withinMs?: number): boolean;
  /** `healthy` for `/readyz`: progress, not a ping. */
  readonly check: Check;
  /**
   * Takes no more jobs, waits for those running, and ends. After `graceMs` it cuts its connections and returns with work
   * unfinished (false): the rows' leases bring that work back. Never hangs, also with the store away.
   */
  close(options: { readonly graceMs: number }): Promise<boolean>;
}

/** Longest wait for a job before the queue is asked again, in seconds; progress is seen at least this often. */
const pollSeconds = 5;
/** A job of a dead worker is found after the lock's end and the next check, in milliseconds. Below the ledger's lease. */
const lockMs = 30_000;
const stalledCheckMs = 15_000;
/** Pause after a failed take: some errors come back at once, and the loop would spin. */
const errorPauseMs = 500;
const healthyWithinMs = 20_000;

/**
 * Starts taking jobs from a queue. A worker outlives any outage of its store. A job of a dead worker may be run again
 * (its handler is guarded by the ledger's claim); one that fails never is.
 * @throws QueueSetupError on PostgreSQL without the queue tables
 */
export async function createWorker(settings: WorkerSettings): Promise<QueueWorker> {
  const { queues, queue, concurrency } = settings;
  const connection = await openWorkerBackend(queues);
  const progress = new Progress(concurrency);
  const stop = new AbortController();
  const worker: Worker<JobData, void, string, IQueueBackend> = new Worker(
    queue,
    (job: Job<JobData, void>) => progress.around(() => runJob(settings, job, stop.signal)),
    {
      connection: {},
      prefix: redisPrefix,
      concurrency,
      drainDelay: pollSeconds,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: 5,
      runRetryDelay: errorPauseMs,
      skipVersionCheck: true,
      ...(telemetry === undefined ? {} : { telemetry }),
    },
    (name, options, extra) => observed(connection.factory(name, options, extra), progress),
  );
  worker.on("error", queues.report);
  const healthy = (withinMs = healthyWithinMs): boolean => progress.since() < withinMs;
  return {
    get active() {
      return progress.active;
    },
    healthy,
    check: {
      name: `take-${queue}`,
      run: async () => {
        if (!healthy()) throw new CheckFailed("no-progress");
      },
    },
    async close({ graceMs }) {
      const ended = await settledWithin(graceMs, worker.close());
      if (!ended) stop.abort();
      await connection.cut();
      return ended;
    },
  };
}

interface WorkerBackend {
  readonly factory: BackendFactory<IQueueBackend>;
  /** Ends its connections at once. */
  cut(): Promise<void>;
}

async function openWorkerBackend(queues: Queues): Promise<WorkerBackend> {
  const { store } = queues;
  if (store.kind === "redis") return redisWorkerBackend(store.createWorkerClients());
  await requireQueueSchema(store.pool);
  // One connection stays with LISTEN; the others take, finish and renew.
  const pool = queuePool(store.databaseUrl, 4, 5_000);
  pool.on("error", queues.report);
  return {
    factory: postgresBackend(pool),
    cut: async () => {
      await settledWithin(1_000, pool.end());
    },
  };
}

function redisWorkerBackend(clients: WorkerClients): WorkerBackend {
  return {
    factory: (name, options, extra) => createRedisBackend(name, { ...options, connection: clients.main }, extra),
    cut: async () => clients.disconnect(),
  };
}

/** Sees each answered take, and slows down after each that failed. */
function observed(backend: IQueueBackend, progress: Progress): IQueueBackend {
  const moveToActive = backend.moveToActive.bind(backend);
  backend.moveToActive = async (...args) => {
    try {
      const taken = await moveToActive(...args);
      progress.mark();
      return taken;
    } catch (error) {
      if (backend.closing === undefined) await pause(errorPauseMs);
      throw error;
    }
  };
  return backend;
}

/** When this worker last got an answer from its queue. While all its hands are full it need not ask. */
class Progress {
  active = 0;
  readonly #concurrency: number;
  #last = Number.NEGATIVE_INFINITY;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  mark(): void {
    this.#last = performance.now();
  }

  /** Milliseconds since the last progress. */
  since(): number {
    return this.active >= this.#concurrency ? 0 : performance.now() - this.#last;
  }

  async around(work: () => Promise<void>): Promise<void> {
    this.active += 1;
    this.mark();
    try {
      await work();
    } finally {
      this.active -= 1;
      this.mark();
    }
  }
}

async function runJob(settings: WorkerSettings, job: Job<JobData, void>, signal: AbortSignal): Promise<void> {
  const { handler, logger, queue, onFinished } = settings;
  const data = jobData.safeParse(job.data);
  if (!data.success) {
    onFinished?.("invalid");
    logger.error({ queue, job: job.id }, "job data are not understood: the job fails, its row stays due");
    throw storable(new InvalidJobError("invalid-job", "job data are not understood"));
  }
  try {
    await handler(data.data, { signal });
    onFinished?.("completed");
  } catch (error) {
    onFinished?.("failed");
    const { tenantId: tenant, kind, subjectId } = data.data;
    logger.error({ err: error, queue, job: job.id, tenant, kind, subject: subjectId }, "job failed");
    throw storable(error);
  }
}

/** BullMQ stores a failed job's message and stack; both may quote what must not lie in Redis. */
function storable(error: unknown): QueueError {
  const { type, code, message } = safeError(error);
  const failure = new QueueError("job-failed", [type, code, message].filter((part) => part !== undefined).join(" "));
  failure.stack = failure.message;
  return failure;
}
