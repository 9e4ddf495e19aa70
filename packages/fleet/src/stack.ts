import { join } from "node:path";
import {
  type PostgresServer,
  type RedisServer,
  RedisUnavailableError,
  startPostgres,
  startRedis,
} from "@countersign/devstack";
import { migrate } from "@countersign/ledger";
import { migrateQueues } from "@countersign/queue";

/** Where the fleet's database and queues are. */
export interface Stack {
  readonly databaseUrl: string;
  /** undefined: the queues run on PostgreSQL. */
  readonly redisUrl: string | undefined;
  /** What there is to say about it, a sentence each. Holds no password. */
  readonly notes: readonly string[];
  /** Ends what was started here, and nothing else. */
  stop(): Promise<void>;
}

/** How to start the embedded stack. */
export interface StackOptions {
  /** Keep the data here. Without it: temporary folders, removed at the end, and no fsync. */
  readonly dataDir?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Real PostgreSQL and, if one is to be had, Redis, with all tables made. Both end with this process, also after
 * kill -9. @throws the errors of `startPostgres`
 */
export async function startEmbeddedStack(options: StackOptions = {}): Promise<Stack> {
  const { dataDir, env = process.env } = options;
  const [postgres, redis] = await Promise.all([
    startPostgres(dataDir === undefined ? { durable: false } : { dataDir: join(dataDir, "postgres") }),
    redisIfAny(dataDir === undefined ? undefined : join(dataDir, "redis"), env),
  ]);
  const redisServer = redis instanceof RedisUnavailableError ? undefined : redis;
  try {
    await migrate(postgres.url);
    if (redisServer === undefined) await migrateQueues(postgres.url);
  } catch (error) {
    await stopBoth(postgres, redisServer);
    throw error;
  }
  return {
    databaseUrl: postgres.url,
    redisUrl: redisServer?.url,
    notes: [
      `PostgreSQL on 127.0.0.1:${postgres.port}${dataDir === undefined ? ", temporary" : `, data in ${postgres.dataDir}`}.`,
      redisServer === undefined
        ? `No Redis (${redis instanceof RedisUnavailableError ? (redis.reasons.at(-1) ?? "none found") : "none found"}): the queues run on PostgreSQL.`
        : `Redis on ${new URL(redisServer.url).host} (${sources[redisServer.source]}).`,
    ],
    stop: () => stopBoth(postgres, redisServer),
  };
}

const sources = {
  external: "the one that REDIS_URL names",
  path: "found on the PATH",
  package: "the distribution's package, unpacked into a cache folder",
} as const;

async function redisIfAny(
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<RedisServer | RedisUnavailableError> {
  try {
    return await startRedis({ env, ...(dataDir === undefined ? { appendOnly: false } : { dataDir }) });
  } catch (error) {
    if (error instanceof RedisUnavailableError) return error;
    throw error;
  }
}

async function stopBoth(postgres: PostgresServer, redis: RedisServer | undefined): Promise<void> {
  await Promise.all([postgres.stop(), redis?.stop()]);
}
