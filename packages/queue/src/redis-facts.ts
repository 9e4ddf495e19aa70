import { QueueSetupError } from "./errors.js";
import { parseRedisUrl, producerClient, producerTimeoutMs, type RedisClient } from "./redis-clients.js";
import {
  type RedisPolicy,
  readRedisPolicy,
  refuseUnfit,
  unauthorised,
  unlessForbidden,
  untilReady,
} from "./redis-policy.js";

/** What a Redis says of itself, for whoever looks whether it is fit. */
export interface RedisFacts {
  readonly policy: RedisPolicy;
  /** As the server names it; undefined where the host hides it. */
  readonly version: string | undefined;
  /** Its clock, ms since 1970, and when it was read by ours; undefined where the host hides it. */
  readonly clock: { readonly theirsMs: number; readonly oursMs: number } | undefined;
}

/**
 * Looks at a Redis and changes nothing. Unlike `checkRedisPolicy` it only tells an eviction policy, never refuses it.
 * Undefined where there is no answer in time.
 * @throws QueueSetupError for a URL that can't be read, a wrong password, and a server on which queues can't run
 */
export async function readRedisFacts(
  redisUrl: string,
  timeoutMs: number = 2 * producerTimeoutMs,
): Promise<RedisFacts | undefined> {
  const client = producerClient(parseRedisUrl(redisUrl));
  let refusal: QueueSetupError | undefined;
  client.on("error", (error) => {
    if (/^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/.test(error.message)) refusal = unauthorised();
  });
  try {
    const ready = await untilReady(client, timeoutMs);
    if (refusal !== undefined) throw refusal;
    if (!ready) return undefined;
    const info = (await unlessForbidden(client.info())) ?? "";
    refuseUnfit(info, client.isCluster);
    return {
      policy: await readRedisPolicy(client, info),
      version: /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1],
      clock: await readClock(client),
    };
  } catch (error) {
    if (error instanceof QueueSetupError) throw error;
    return undefined;
  } finally {
    client.disconnect();
  }
}

async function readClock(client: RedisClient): Promise<RedisFacts["clock"]> {
  const before = Date.now();
  const answer = await unlessForbidden(client.time());
  const oursMs = (before + Date.now()) / 2;
  if (answer === undefined) return undefined;
  const [seconds, microseconds] = answer.map(Number);
  if (seconds === undefined || microseconds === undefined) return undefined;
  return { theirsMs: seconds * 1_000 + microseconds / 1_000, oursMs };
}
