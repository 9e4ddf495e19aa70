import { type RedisServer, startRedis, TcpProxy } from "@countersign/devstack";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { captureLog, collector, deferred, describeStore, job } from "./conformance.js";
import { openQueues, type Queues } from "./connection.js";
import { dispatch, jobsAlive } from "./dispatcher.js";
import { QueueSetupError, QueueUnavailableError } from "./errors.js";
import { jobId } from "./queues.js";
import { readRedisFacts } from "./redis-facts.js";
import { checkRedisPolicy } from "./redis-policy.js";
import { createWorker, type QueueWorker } from "./worker.js";

const { logger, lines } = captureLog();
// These tests kill, flush and misconfigure their Redis: never one that was lent to them.
const ownRedis = () => startRedis({ env: { ...process.env, REDIS_URL: "" }, appendOnly: false });
const nowhere = "postgres://127.0.0.1:1/unused";

async function command(url: string, ...args: [string, ...string[]]): Promise<unknown> {
  const client = new Redis(url, { retryStrategy: () => null });
  client.on("error", () => undefined);
  try {
    return await client.call(...args);
  } finally {
    client.disconnect();
  }
}

describeStore("Redis", async () => {
  const server = await ownRedis();
  return {
    open: () => openQueues({ redisUrl: server.url, databaseUrl: nowhere, logger }),
    reset: async () => void (await command(server.url, "FLUSHALL")),
    stop: () => server.stop(),
  };
});

describe("what a Redis says of itself", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await ownRedis();
  });
  afterAll(() => server?.stop());

  it("is its policy, also one that evicts, its version and its clock", async () => {
    await command(server.url, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    expect(await readRedisFacts(server.url)).toEqual({
      policy: { verdict: "evicting", policy: "allkeys-lru" },
      version: expect.stringMatching(/^\d+\.\d+/),
      clock: { theirsMs: expect.any(Number), oursMs: expect.any(Number) },
    });
  });

  it("is nothing where nobody answers", async () => {
    expect(await readRedisFacts("redis://127.0.0.1:1", 300)).toBeUndefined();
  });

  it("is refused with its remedy where the password is wrong", async () => {
    await command(server.url, "CONFIG", "SET", "requirepass", "right");
    const wrong = server.url.replace("redis://", "redis://:wrong@");
    await expect(readRedisFacts(wrong)).rejects.toThrow(QueueSetupError);
  });
});

describe("queues on a Redis that comes and goes", () => {
  let server: RedisServer;
  let queues: Queues;
  let worker: QueueWorker | undefined;
  const seen = { current: collector() };
  let away = false;
  const kill = async () => {
    away = true;
    await server.kill();
  };
  const restart = async () => {
    await server.restart({ empty: true });
    away = false;
  };

  beforeAll(async () => {
    server = await ownRedis();
  });
  beforeEach(async () => {
    await command(server.url, "FLUSHALL");
    seen.current = collector();
    queues = openQueues({ redisUrl: server.url, databaseUrl: nowhere, logger });
    expect(await queues.ready(5_000)).toBe(true);
  });
  afterEach(async () => {
    await worker?.close({ graceMs: 500 });
    worker = undefined;
    await queues.close();
    if (away) await restart();
  });
  afterAll(() => server?.stop());

  const work = async (of: Queues = queues) => {
    worker = await createWorker({
      queues: of,
      queue: "submit",
      concurrency: 2,
      handler: async (data) => seen.current.take(data),
      logger,
    });
    return worker;
  };
  const dispatched = (subject: string) => () => dispatch(queues, [job(subject)]);
  const added = { added: 1, failed: 0 };

  it("fails an add at once while Redis is away, buffers nothing, and goes on when it is back", async () => {
    await work();
    await dispatch(queues, [job("op-1")]);
    await seen.current.count(1);
    await kill();
    await expect.poll(dispatched("early")).toEqual({ added: 0, failed: 1 });
    const many = Array.from({ length: 5_000 }, (_, index) => job(`lost-${index}`));
    const started = performance.now();
    expect(await dispatch(queues, many)).toEqual({ added: 0, failed: 5_000 });
    expect(performance.now() - started).toBeLessThan(1_500);
    await expect(jobsAlive(queues, [job("op-1")])).rejects.toThrow(QueueUnavailableError);
    await expect(queues.check.run(AbortSignal.timeout(1_000))).rejects.toThrow("redis-unreachable");
    await restart();
    await expect.poll(dispatched("op-2"), { timeout: 10_000 }).toEqual(added);
    await seen.current.count(2);
    expect(seen.current.subjects()).toEqual(["op-1", "op-2"]);
  });

  it("answers in time when Redis takes commands and never answers, and recovers", async () => {
    const proxy = await TcpProxy.start({ target: { host: "127.0.0.1", port: server.port } });
    const slow = openQueues({ redisUrl: `redis://127.0.0.1:${proxy.port}`, databaseUrl: nowhere, logger });
    expect(await slow.ready(5_000)).toBe(true);
    expect(await dispatch(slow, [job("op-1")])).toEqual(added);
    await proxy.setMode({ kind: "swallow-answers" });
    expect(await dispatch(slow, [job("op-2")], 200)).toEqual({ added: 0, failed: 1 });
    expect(await dispatch(slow, [job("op-3")], 200)).toEqual({ added: 0, failed: 1 });
    await proxy.setMode({ kind: "pass" });
    proxy.closeAll();
    await expect.poll(() => dispatch(slow, [job("op-4")]), { timeout: 10_000 }).toEqual(added);
    await slow.close();
    await proxy.stop();
  });

  it("runs new work after FLUSHALL without a restart", async () => {
    await work();
    await dispatch(queues, [job("op-1")]);
    await seen.current.count(1);
    await command(server.url, "FLUSHALL");
    expect(await jobsAlive(queues, [job("op-1")])).toEqual([false]);
    await dispatch(queues, [job("op-1")]);
    await seen.current.count(2);
  });

  it("sees that a job is gone when only its list was lost", async () => {
    await dispatch(queues, [job("op-1")]);
    expect(await jobsAlive(queues, [job("op-1")])).toEqual([true]);
    await command(server.url, "DEL", queues.queue("submit").toKey("wait"));
    expect(await jobsAlive(queues, [job("op-1")])).toEqual([false]);
  });

  it("is not healthy while Redis is away, and again when it has taken from its queue", async () => {
    const running = await work();
    await expect.poll(() => running.healthy()).toBe(true);
    await kill();
    await expect.poll(() => running.healthy(300), { timeout: 5_000 }).toBe(false);
    await restart();
    await expect.poll(() => running.healthy(300), { timeout: 15_000, interval: 20 }).toBe(true);
  });

  it.each(["down since the start", "lost while it works"])("closes within its grace with Redis %s", async (when) => {
    const held = deferred();
    const never = when !== "lost while it works";
    const url = never ? "redis://127.0.0.1:1" : server.url;
    const own = openQueues({ redisUrl: url, databaseUrl: nowhere, logger });
    const handler = async () => {
      seen.current.take({ tenantId: "acme", kind: "operation", subjectId: "x" });
      await held.promise;
    };
    const closing = await createWorker({ queues: own, queue: "submit", concurrency: 1, handler, logger });
    if (!never) {
      await dispatch(queues, [job("op-1")]);
      await seen.current.count(1);
      await kill();
    }
    const started = performance.now();
    await closing.close({ graceMs: 500 });
    await own.close();
    expect(performance.now() - started).toBeLessThan(4_000);
    held.resolve(undefined);
  });

  it("leaves a demoted primary and works again after the role is restored", async () => {
    await work();
    await dispatch(queues, [job("op-1")]);
    await seen.current.count(1);
    const other = await ownRedis();
    await command(server.url, "REPLICAOF", "127.0.0.1", String(other.port));
    await expect.poll(dispatched("op-2"), { timeout: 5_000 }).toEqual({ added: 0, failed: 1 });
    await command(server.url, "REPLICAOF", "NO", "ONE");
    await expect.poll(dispatched("op-3"), { timeout: 10_000 }).toEqual(added);
    await expect.poll(() => seen.current.subjects(), { timeout: 15_000 }).toContain("op-3");
    await other.stop();
  });

  it("puts nothing but ids into Redis, under one hash tag", async () => {
    await dispatch(queues, [job("op-1")]);
    const keys = await command(server.url, "KEYS", "*");
    expect(keys).toEqual(expect.arrayContaining([`{countersign}:submit:${jobId(job("op-1"), 0)}`]));
    expect(Array.isArray(keys) && keys.every((key) => String(key).startsWith("{countersign}:"))).toBe(true);
  });

  it("reports an outage a few times, not thousands", async () => {
    lines.length = 0;
    await work();
    await kill();
    for (let i = 0; i < 1_000; i += 1) await dispatch(queues, [job(`op-${i}`)]);
    await restart();
    expect(lines.length).toBeLessThan(20);
  });

  describe("checkRedisPolicy", () => {
    const set = (policy: string) => command(server.url, "CONFIG", "SET", "maxmemory-policy", policy);
    afterEach(() => set("noeviction"));

    it("accepts noeviction", async () => {
      expect(await checkRedisPolicy(server.url)).toEqual({ verdict: "ok", policy: "noeviction" });
      await queues.check.run(AbortSignal.timeout(1_000));
    });

    it.each(["allkeys-lru", "volatile-ttl"])("refuses %s with the remedy, unless told otherwise", async (policy) => {
      await set(policy);
      await expect(checkRedisPolicy(server.url)).rejects.toThrow(QueueSetupError);
      await expect(checkRedisPolicy(server.url)).rejects.toThrow(/noeviction, or COUNTERSIGN_ALLOW_REDIS_EVICTION/);
      expect(await checkRedisPolicy(server.url, { allowEviction: true })).toEqual({ verdict: "evicting", policy });
      await expect(queues.check.run(AbortSignal.timeout(1_000))).rejects.toThrow("redis-evicts");
    });

    it("tells unreachable from refused", async () => {
      expect(await checkRedisPolicy("redis://127.0.0.1:1", { timeoutMs: 200 })).toEqual({ verdict: "unreachable" });
    });

    it("refuses a wrong password at once, without repeating it", async () => {
      const check = checkRedisPolicy(`redis://someone:planted@127.0.0.1:${server.port}`);
      await expect(check).rejects.toThrow(/REDIS_URL/);
      await expect(check).rejects.not.toThrow(/planted/);
    });

    it("says that it cannot tell where the server hides the setting", async () => {
      await command(server.url, "ACL", "SETUSER", "veiled", "on", ">pw", "~*", "+@all", "-info", "-config");
      const url = `redis://veiled:pw@127.0.0.1:${server.port}`;
      expect(await checkRedisPolicy(url)).toEqual({ verdict: "cannot-tell" });
    });
  });
});
