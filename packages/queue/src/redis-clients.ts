import { Cluster, Redis, type RedisOptions } from "ioredis";
import { QueueSetupError } from "./errors.js";

/** A connection to Redis: one server (also found through Sentinel), or a cluster. */
export type RedisClient = Redis | Cluster;

/** How `REDIS_URL` was understood. */
export interface RedisAddress {
  readonly mode: "single" | "sentinel" | "cluster";
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
  /** Sentinel: name of the primary. */
  readonly primary?: string;
}

const pattern = /^(redis|rediss)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?#@]+)(?:\/([^?#]*))?(?:\?db=(\d+))?$/;

/**
 * Reads `redis://`, `rediss://` (TLS), `redis+sentinel://host,host/name` and `redis+cluster://host,host`, the latter two
 * with `rediss+…` for TLS.
 * @throws QueueSetupError that never repeats the URL, which holds a password
 */
export function parseRedisUrl(url: string): RedisAddress {
  const match = pattern.exec(url);
  if (match === null) throw invalid("is not a Redis URL");
  const [, scheme, kind, credentials, hosts = "", path = "", db] = match;
  const mode = kind === "sentinel" || kind === "cluster" ? kind : "single";
  const nodes = hosts.split(",").map((host) => parseNode(host, mode === "sentinel" ? 26_379 : 6_379));
  if (mode === "single" && nodes.length !== 1) throw invalid("names several hosts without +sentinel or +cluster");
  if (mode === "sentinel" && path === "") throw invalid("lacks the primary's name after the Sentinel hosts");
  const number = mode === "sentinel" ? db : path || db;
  if (number !== undefined && !/^\d*$/.test(number)) throw invalid("has a database that is not a number");
  return {
    mode,
    nodes,
    tls: scheme === "rediss",
    ...parseCredentials(credentials),
    ...(number === undefined || number === "" ? {} : { db: Number(number) }),
    ...(mode === "sentinel" ? { primary: decode(path) } : {}),
  };
}

function invalid(problem: string): QueueSetupError {
  const remedy = "Use redis://host:port, rediss://, redis+sentinel://host,host/name or redis+cluster://host,host";
  return new QueueSetupError("redis-url", `REDIS_URL ${problem}. ${remedy}.`);
}

function parseNode(text: string, defaultPort: number): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined) throw invalid("has a host that cannot be read");
  return { host, port: match?.[3] === undefined ? defaultPort : Number(match[3]) };
}

function parseCredentials(text: string | undefined): { username?: string; password?: string } {
  if (text === undefined || text === "") return {};
  const colon = text.indexOf(":");
  // redis://secret@host is read as a password by nobody; a name without a password is refused by every server.
  if (colon < 0) return { username: decode(text) };
  const username = decode(text.slice(0, colon));
  return { ...(username === "" ? {} : { username }), password: decode(text.slice(colon + 1)) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("has a percent sign that encodes nothing");
  }
}

// After a failover the old connection would keep answering READONLY or MASTERDOWN for ever; a new one finds the primary.
const demoted = /^(READONLY|MASTERDOWN|UNBLOCKED|CLUSTERDOWN)\b/;
const reconnectOnError = (error: Error): boolean => demoted.test(error.message);

// Jittered, so that a fleet doesn't return to a restarted Redis in one step.
const retryStrategy = (times: number): number =>
  Math.min(50 * 2 ** Math.min(times, 6), 2_000) * (0.5 + Math.random() / 2);

/** How long an unanswered command may keep a worker's connection, in milliseconds: above the longest blocking wait. */
const workerSocketTimeoutMs = 15_000;
/** The same for producers, who would rather leave the work to the ledger. */
export const producerTimeoutMs = 1_000;

/** A client that fails at once while Redis is away: nothing is buffered, nothing waits. */
export function producerClient(address: RedisAddress): RedisClient {
  return connect(address, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
    commandTimeout: producerTimeoutMs,
    socketTimeout: 2 * producerTimeoutMs,
  });
}

/** A client that waits for Redis for ever, as a worker should. */
export function workerClient(address: RedisAddress): RedisClient {
  return connect(address, { maxRetriesPerRequest: null, connectTimeout: 5_000, socketTimeout: workerSocketTimeoutMs });
}

function connect(address: RedisAddress, behaviour: RedisOptions): RedisClient {
  const options: RedisOptions & { replyMapping: "legacy" } = {
    ...behaviour,
    // BullMQ reads flat lists, as all clients gave before RESP3.
    replyMapping: "legacy",
    reconnectOnError,
    retryStrategy,
    keepAlive: 10_000,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    ...(address.tls ? { tls: {} } : {}),
  };
  const [first] = address.nodes;
  if (first === undefined) throw invalid("names no host");
  switch (address.mode) {
    case "single":
      return new Redis({ ...options, ...first, db: address.db ?? 0 });
    case "sentinel":
      return new Redis({
        ...options,
        sentinels: [...address.nodes],
        name: address.primary ?? "",
        db: address.db ?? 0,
        enableTLSForSentinelMode: address.tls,
        sentinelRetryStrategy: retryStrategy,
      });
    case "cluster": {
      const { enableOfflineQueue, retryStrategy: _, ...redisOptions } = options;
      return new Cluster([...address.nodes], {
        redisOptions,
        clusterRetryStrategy: retryStrategy,
        ...(enableOfflineQueue === undefined ? {} : { enableOfflineQueue }),
      });
    }
  }
}
