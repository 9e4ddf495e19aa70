import { type Check, CheckFailed, type Logger } from "@countersign/runtime";
import { type BackendFactory, createRedisBackend, type IQueueBackend, type JobsOptions, Queue } from "bullmq";
import { Cluster, Redis } from "ioredis";
import type { Pool } from "pg";
import { createErrorReporter, type ReportError } from "./error-reporter.js";
import { postgresBackend, queuePool, requireQueueSchema } from "./postgres-pool.js";
import type { JobData, QueueName } from "./queues.js";
import { parseRedisUrl, producerClient, producerTimeoutMs, type RedisClient, workerClient } from "./redis-clients.js";
import { isReady, type RedisPolicy, readRedisPolicy, untilReady } from "./redis-policy.js";
import { telemetry } from "./telemetry.js";
import { within } from "./timeout.js";

/** Where queues live. */
export interface QueueSettings {
  /** `REDIS_URL`; without it the queues run on PostgreSQL. */
  readonly redisUrl?: string | undefined;
  readonly databaseUrl: string;
  /** A PostgreSQL past any pooler, for queues without Redis; `databaseUrl` when left out. */
  readonly queueDatabaseUrl?: string | undefined;
  readonly logger: Logger;
}

/** A BullMQ queue of ours, for producers and Bull Board. */
export type JobQueue = Queue<JobData, void, string, JobData, void, string, IQueueBackend>;

/** The store behind the queues, as this package's parts use it. */
export type QueueStore =
  | { readonly kind: "redis"; readonly client: RedisClient; createWorkerClients(): WorkerClients }
  | { readonly kind: "postgres"; readonly pool: Pool; readonly databaseUrl: string };

/** Redis connections of one worker; the blocking one is made by BullMQ from the main one. */
export interface WorkerClients {
  readonly main: RedisClient;
  /** Ends all of them at once, whatever they are doing. */
  disconnect(): void;
}

/** The queues of one process. */
export interface Queues {
  readonly kind: "redis" | "postgres";
  readonly store: QueueStore;
  /** The queue of that name, opened at first use. */
  queue(name: QueueName): JobQueue;
  /** Waits for the store at start; false when it is not there in time, which must not keep a process from starting. */
  ready(timeoutMs: number): Promise<boolean>;
  /**
   * For `/readyz` of producers: the store answers, and Redis does not evict (reason `redis-evicts`). A Redis that hides
   * its policy passes: nobody can tell.
   */
  readonly check: Check;
  readonly report: ReportError;
  /** Ends all connections of producers within two seconds, also while the store is away. */
  close(): Promise<void>;
}

/**
 * Every key of ours lies under this prefix. The braces are a hash tag: on a cluster all keys of a queue must lie in one
 * slot, and one spelling everywhere lets a deployment move between a server and a cluster.
 */
export const redisPrefix = "{countersign}";

/**
 * How every job is handed over. One attempt: the ledger retries, never the queue. What is kept is bounded; failed jobs
 * stay longer, for inspection in Bull Board.
 */
export const jobOptions = {
  attempts: 1,
  removeOnComplete: { count: 1_000 },
  removeOnFail: { count: 5_000 },
} as const satisfies JobsOptions;

/**
 * Opens the queues on Redis or, without a `redisUrl`, on PostgreSQL. Connects in the background and never fails because
 * the store is away.
 * @throws QueueSetupError for a URL that can't be read
 */
export function openQueues(settings: QueueSettings): Queues {
  const report = createErrorReporter(settings.logger, "queue connection error");
  return settings.redisUrl === undefined
    ? postgresQueues(settings.queueDatabaseUrl ?? settings.databaseUrl, report)
    : redisQueues(settings.redisUrl, report);
}

function redisQueues(redisUrl: string, report: ReportError): Queues {
  const address = parseRedisUrl(redisUrl);
  const client = producerClient(address);
  client.on("error", report);
  const store: QueueStore = { kind: "redis", client, createWorkerClients: () => openWorkerClients(redisUrl, report) };
  const factory: BackendFactory<IQueueBackend> = (name, options, extra) =>
    createRedisBackend(name, { ...options, connection: client }, extra);
  const queues = openedQueues(factory, report);
  return {
    kind: "redis",
    store,
    queue: queues.open,
    report,
    ready: (timeoutMs) => untilReady(client, timeoutMs),
    check: {
      name: "queue",
      run: async () => {
        const policy = isReady(client) ? await readRedisPolicy(client).catch(unreachable) : unreachable();
        if (policy.verdict === "unreachable") throw new CheckFailed("redis-unreachable");
        if (policy.verdict === "evicting") throw new CheckFailed("redis-evicts");
      },
    },
    close: async () => {
      await queues.close();
      client.disconnect();
    },
  };
}

const unreachable = (): RedisPolicy => ({ verdict: "unreachable" });

function openWorkerClients(redisUrl: string, report: ReportError): WorkerClients {
  const main = workerClient(parseRedisUrl(redisUrl));
  const all: RedisClient[] = [main];
  main.on("error", report);
  // BullMQ makes the blocking connection from this one and would keep it to itself: closing must reach it too.
  const original = main.duplicate;
  Object.assign(main, {
    duplicate(...args: unknown[]): unknown {
      const copy: unknown = Reflect.apply(original, main, args);
      if (copy instanceof Redis || copy instanceof Cluster) {
        copy.on("error", report);
        all.push(copy);
      }
      return copy;
    },
  });
  return {
    main,
    disconnect: () => {
      for (const each of all) each.disconnect();
    },
  };
}

/** Enough for batches side by side; a producer never needs more. */
const producerPoolSize = 4;

function postgresQueues(databaseUrl: string, report: ReportError): Queues {
  const pool = queuePool(databaseUrl, producerPoolSize, producerTimeoutMs);
  pool.on("error", report);
  const factory = postgresBackend(pool);
  const queues = openedQueues(factory, report);
  return {
    kind: "postgres",
    store: { kind: "postgres", pool, databaseUrl },
    queue: queues.open,
    report,
    ready: async (timeoutMs) => {
      try {
        await within(timeoutMs, requireQueueSchema(pool));
        return true;
      } catch (error) {
        report(error);
        return false;
      }
    },
    check: { name: "queue", run: () => requireQueueSchema(pool) },
    close: async () => {
      await queues.close();
      await settledWithin(closeTimeoutMs, pool.end());
    },
  };
}

const closeTimeoutMs = 1_000;

function openedQueues(factory: BackendFactory<IQueueBackend>, report: ReportError) {
  const opened = new Map<QueueName, JobQueue>();
  return {
    open(name: QueueName): JobQueue {
      const former = opened.get(name);
      if (former !== undefined) return former;
      const options = {
        connection: {},
        prefix: redisPrefix,
        defaultJobOptions: jobOptions,
        skipVersionCheck: true,
        ...(telemetry === undefined ? {} : { telemetry }),
      };
      const queue: JobQueue = new Queue(name, options, factory);
      queue.on("error", report);
      opened.set(name, queue);
      return queue;
    },
    async close(): Promise<void> {
      await settledWithin(closeTimeoutMs, Promise.all([...opened.values()].map((queue) => queue.close())));
    },
  };
}

/** Waits for an ending, but not for ever and whatever it says: what is left ends with the process. */
export async function settledWithin(ms: number, ending: Promise<unknown>): Promise<boolean> {
  try {
    await within(ms, ending);
    return true;
  } catch {
    return false;
  }
}
