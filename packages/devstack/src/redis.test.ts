import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExternalRedisError, RedisUnavailableError } from "./errors.js";
import { isProcessAlive } from "./process-alive.js";
import { type RedisServer, startRedis } from "./redis.js";
import { cacheFolder } from "./redis-package.js";

async function ask<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** The environment without REDIS_URL: these tests kill what they start. */
const env: NodeJS.ProcessEnv = { ...process.env, REDIS_URL: "" };

describe("a local Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ env });
  }, 300_000);
  afterAll(() => server.stop());

  it("answers, never evicts, and listens on loopback only", async () => {
    const settings = await ask(server.url, async (redis) => [
      await redis.config("GET", "maxmemory-policy"),
      await redis.config("GET", "bind"),
      await redis.config("GET", "appendonly"),
    ]);
    expect(settings).toEqual([
      ["maxmemory-policy", "noeviction"],
      ["bind", "127.0.0.1"],
      ["appendonly", "yes"],
    ]);
  });

  it("keeps its data over kill -9 and restart, and loses it when restarted empty", async () => {
    const { url, pid } = server;
    await ask(url, (redis) => redis.set("kept", "yes"));
    await server.kill("SIGKILL");
    await server.restart();
    expect(server.url).toBe(url);
    expect(server.pid).not.toBe(pid);
    expect(await ask(url, (redis) => redis.get("kept"))).toBe("yes");
    await server.restart({ empty: true });
    expect(await ask(url, (redis) => redis.get("kept"))).toBeNull();
  });

  it("runs beside another one on another port, which leaves no process behind when stopped", async () => {
    const second = await startRedis({ env, appendOnly: false });
    expect(second.port).not.toBe(server.port);
    const folder = await ask(second.url, (redis) => redis.config("GET", "dir"));
    expect(folder).toEqual(["dir", expect.stringContaining("countersign-redis-")]);
    const { pid } = second;
    await second.stop();
    await second.stop();
    expect(pid !== undefined && isProcessAlive(pid)).toBe(false);
    expect(existsSync(String(Array.isArray(folder) ? folder[1] : ""))).toBe(false);
  });

  it("names the taken port when a chosen one is taken", async () => {
    await expect(startRedis({ env, port: server.port })).rejects.toThrow(`port ${server.port} is taken`);
  });

  it("treats the server that REDIS_URL names as not its own", async () => {
    const external = await startRedis({ env: { ...env, REDIS_URL: server.url } });
    expect(external).toMatchObject({ source: "external", url: server.url, port: server.port, pid: undefined });
    await external.stop();
    expect(await ask(external.url, (redis) => redis.ping())).toBe("PONG");
    await expect(external.kill()).rejects.toThrow(ExternalRedisError);
    await expect(external.restart()).rejects.toThrow(ExternalRedisError);
  });
});

describe("no Redis to be had", () => {
  const cache = mkdtempSync(join(tmpdir(), "devstack-cache-"));
  afterAll(() => rmSync(cache, { recursive: true, force: true }));

  it("says which three ways there are to get one", async () => {
    const refused = startRedis({ env: { ...env, COUNTERSIGN_NO_REDIS: "1" } });
    await expect(refused).rejects.toThrow(RedisUnavailableError);
    await expect(refused).rejects.toThrow(/REDIS_URL[\s\S]*on the PATH[\s\S]*Debian or Ubuntu/);
  });

  it("does not try a failed download again within a minute, and leaves nothing half-made", async () => {
    await writeFile(join(cache, "redis-failure"), "mirror unreachable");
    const started = startRedis({ env: { COUNTERSIGN_CACHE_DIR: cache, PATH: "" } });
    await expect(started).rejects.toThrow(
      process.platform === "linux" ? /mirror unreachable|is missing/ : /is missing/,
    );
    expect(await readdir(cache)).toEqual(["redis-failure"]);
  });

  it("keeps what it fetches where it is told, else in the user's cache", () => {
    expect(cacheFolder({ COUNTERSIGN_CACHE_DIR: "/elsewhere" })).toBe("/elsewhere");
    expect(cacheFolder({ XDG_CACHE_HOME: "/caches" })).toBe("/caches/countersign");
    expect(cacheFolder({})).toMatch(/\.cache\/countersign$/);
  });
});
