import {
  type PostgresOptions,
  type PostgresServer,
  type RedisServer,
  RedisUnavailableError,
  startPostgres,
  startRedis,
} from "@countersign/devstack";
import { migrate, migrationState } from "@countersign/ledger";
import { migrateQueues, queueSchema } from "@countersign/queue";
import postgres from "postgres";
import { FleetError } from "./errors.js";

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
  /** Keep the data. Without it: temporary folders, removed at the end, and no fsync. */
  readonly keep?: {
    readonly redisDir: string;
    /** Default: `.countersign/postgres`, or below /var/lib where root's PostgreSQL can't reach that. */
    readonly postgresDir?: string;
  };
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Real PostgreSQL and, if one is to be had, Redis, with all tables made. Both end with this process, also after
 * kill -9. @throws the errors of `startPostgres`
 */
export async function startEmbeddedStack(options: StackOptions = {}): Promise<Stack> {
  const { keep, env = process.env } = options;
  const starting = { server: startPostgres(postgresOptions(keep)), redis: redisIfAny(keep?.redisDir, env) };
  const [startedServer, startedRedis] = await Promise.allSettled([starting.server, starting.redis]);
  if (startedServer.status === "rejected" || startedRedis.status === "rejected") {
    if (startedServer.status === "fulfilled") await startedServer.value.stop();
    if (startedRedis.status === "fulfilled" && !(startedRedis.value instanceof RedisUnavailableError))
      await startedRedis.value.stop();
  }
  const [server, redis] = [await starting.server, await starting.redis];
  const redisServer = redis instanceof RedisUnavailableError ? undefined : redis;
  try {
    await migrate(server.url);
    if (redisServer === undefined) await migrateQueues(server.url);
  } catch (error) {
    await stopBoth(server, redisServer);
    throw error;
  }
  return {
    databaseUrl: server.url,
    redisUrl: redisServer?.url,
    notes: [
      `PostgreSQL on 127.0.0.1:${server.port}${keep === undefined ? ", temporary" : `, data in ${server.dataDir}`}.`,
      redisServer === undefined
        ? `No Redis (${redis instanceof RedisUnavailableError ? (redis.reasons.at(-1) ?? "none found") : "none found"}): the queues run on PostgreSQL.`
        : `Redis on ${new URL(redisServer.url).host} (${sources[redisServer.source]}).`,
    ],
    stop: () => stopBoth(server, redisServer),
  };
}

function postgresOptions(keep: StackOptions["keep"]): PostgresOptions {
  if (keep === undefined) return { durable: false };
  return { persistent: true, ...(keep.postgresDir === undefined ? {} : { dataDir: keep.postgresDir }) };
}

const sources = {
  external: "the one that REDIS_URL names",
  path: "found on the PATH",
  package: "the distribution's package, unpacked into a cache folder",
} as const;

/** Redis as `startRedis` finds it, or why there is none; kept in `dataDir`, or temporary. */
export async function redisIfAny(
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

async function stopBoth(server: PostgresServer, redis: RedisServer | undefined): Promise<void> {
  await Promise.all([server.stop(), redis?.stop()]);
}

/**
 * The stack that the environment names. Nothing is started and nothing migrated: that is an administrator's step.
 * @throws FleetError when the tables are not there
 */
export async function externalStack(databaseUrl: string, env: NodeJS.ProcessEnv): Promise<Stack> {
  const redisUrl = env.REDIS_URL === "" ? undefined : env.REDIS_URL;
  const { applied } = await migrationState(databaseUrl);
  const queueUrl =
    env.QUEUE_DATABASE_URL === undefined || env.QUEUE_DATABASE_URL === "" ? databaseUrl : env.QUEUE_DATABASE_URL;
  if (applied === 0 || (redisUrl === undefined && !(await hasQueueTables(queueUrl)))) {
    throw new FleetError("the database has no tables of ours: run `npm run countersign -- migrate` first");
  }
  return {
    databaseUrl,
    redisUrl,
    notes: [
      "PostgreSQL is the one that DATABASE_URL names.",
      redisUrl === undefined ? "REDIS_URL is not set: the queues run on PostgreSQL." : `Redis is ${sources.external}.`,
    ],
    stop: async () => undefined,
  };
}

async function hasQueueTables(databaseUrl: string): Promise<boolean> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined, connect_timeout: 5, fetch_types: false });
  try {
    const [row] = await client<
      { present: boolean }[]
    >`SELECT to_regclass(${`${queueSchema}.job`}) IS NOT NULL AS present`;
    return row?.present === true;
  } finally {
    await client.end({ timeout: 1 });
  }
}
