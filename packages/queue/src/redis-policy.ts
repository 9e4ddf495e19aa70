import { QueueSetupError } from "./errors.js";
import { parseRedisUrl, producerClient, producerTimeoutMs, type RedisClient } from "./redis-clients.js";

/**
 * What a Redis says of itself.
 * - `ok`: never evicts.
 * - `evicting`: may drop jobs and locks when memory is short (`policy` says how).
 * - `cannot-tell`: some hosts hide the setting; nobody knows.
 * - `unreachable`: not there now; work waits in the ledger.
 */
export type RedisPolicy =
  | { readonly verdict: "ok"; readonly policy: "noeviction" }
  | { readonly verdict: "evicting"; readonly policy: string }
  | { readonly verdict: "cannot-tell" }
  | { readonly verdict: "unreachable" };

/** Oldest Redis that BullMQ 6 runs on. */
const oldest: readonly [number, number] = [6, 2];

/**
 * Looks at a Redis before a process uses it. Refuses one that may evict (unless `allowEviction`), one that is too old,
 * and a cluster addressed as a single server, which would fail at the first job. An unreachable one is reported, not
 * refused: Redis may be away at any time.
 * @throws QueueSetupError
 */
export async function checkRedisPolicy(
  redisUrl: string,
  options: { readonly allowEviction?: boolean; readonly timeoutMs?: number } = {},
): Promise<RedisPolicy> {
  const address = parseRedisUrl(redisUrl);
  const client = producerClient(address);
  // Reported by the verdict; without a listener the client would print them itself.
  let refusal: QueueSetupError | undefined;
  client.on("error", (error) => {
    if (/^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/.test(error.message)) refusal = unauthorised();
  });
  try {
    if (!(await untilReady(client, options.timeoutMs ?? 2 * producerTimeoutMs))) {
      if (refusal !== undefined) throw refusal;
      return { verdict: "unreachable" };
    }
    const info = (await unlessForbidden(client.info())) ?? "";
    refuseUnfit(info, address.mode === "cluster");
    const policy = await readRedisPolicy(client, info);
    if (policy.verdict === "evicting" && !(options.allowEviction ?? false)) throw evicting(policy.policy);
    return policy;
  } catch (error) {
    if (error instanceof QueueSetupError) throw error;
    return { verdict: "unreachable" };
  } finally {
    client.disconnect();
  }
}

/** The eviction policy, from `INFO` where it is told there and else from the configuration. */
export async function readRedisPolicy(client: RedisClient, info?: string): Promise<RedisPolicy> {
  const memory = info ?? (await unlessForbidden(client.info("memory"))) ?? "";
  const policy = /^maxmemory_policy:([a-z-]+)/m.exec(memory)?.[1] ?? (await configuredPolicy(client));
  if (policy === undefined) return { verdict: "cannot-tell" };
  return policy === "noeviction" ? { verdict: "ok", policy } : { verdict: "evicting", policy };
}

async function configuredPolicy(client: RedisClient): Promise<string | undefined> {
  const answer = await unlessForbidden(client.call("CONFIG", "GET", "maxmemory-policy"));
  const policy: unknown = Array.isArray(answer) ? answer[1] : undefined;
  return typeof policy === "string" ? policy : undefined;
}

/** The answer, or undefined where the server refuses the command: hosts and access lists hide some. */
export async function unlessForbidden<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && error.name === "ReplyError") return undefined;
    throw error;
  }
}

/** A wrong name or password, with the remedy. */
export function unauthorised(): QueueSetupError {
  return new QueueSetupError("redis-auth", "Redis refuses the name or password in REDIS_URL. Correct them there.");
}

/** Refuses a server on which the queues can't run, by its `INFO`. Throws QueueSetupError. */
export function refuseUnfit(info: string, asCluster: boolean): void {
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(info);
  const [major, minor] = [Number(version?.[1] ?? oldest[0]), Number(version?.[2] ?? oldest[1])];
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    const text = `Redis ${major}.${minor} is too old for the queues. Use Redis ${oldest.join(".")} or later, or Valkey.`;
    throw new QueueSetupError("redis-version", text);
  }
  if (/^redis_mode:cluster/m.test(info) && !asCluster) {
    const text = "REDIS_URL names a cluster as if it were one server. Write redis+cluster://host:port,host:port.";
    throw new QueueSetupError("redis-cluster", text);
  }
}

function evicting(policy: string): QueueSetupError {
  const remedy = "Set maxmemory-policy to noeviction, or COUNTERSIGN_ALLOW_REDIS_EVICTION=true to accept delays";
  return new QueueSetupError(
    "redis-evicts",
    `Redis may drop jobs and locks: its maxmemory-policy is ${policy}. ${remedy}.`,
  );
}

/** Whether commands would be sent now. */
export function isReady(client: RedisClient): boolean {
  return client.status === "ready" || (client.isCluster && client.status === "connect");
}

/** Waits for a connection; false when there is none in time. */
export function untilReady(client: RedisClient, timeoutMs: number): Promise<boolean> {
  if (isReady(client)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (ready: boolean) => () => {
      clearTimeout(timer);
      client.off("ready", onReady);
      client.off("end", onEnd);
      resolve(ready);
    };
    const onReady = settle(true);
    const onEnd = settle(false);
    const timer = setTimeout(settle(false), timeoutMs);
    client.once("ready", onReady);
    client.once("end", onEnd);
  });
}
