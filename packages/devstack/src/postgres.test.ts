import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PostgresServer, startPostgres } from "./postgres.js";
import { isProcessAlive } from "./process-alive.js";
import { createTestDatabase } from "./test-database.js";

async function query(url: string, text: string): Promise<readonly postgres.Row[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

describe("a temporary PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ durable: false });
  });
  afterAll(() => server.stop());

  it(`answers when started by ${userInfo().username}, with UTF8, locale C, UTC and room for 200 connections`, async () => {
    const [row] = await query(
      server.url,
      `SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS timezone,
              current_setting('max_connections') AS connections, current_setting('listen_addresses') AS listens,
              (SELECT datcollate FROM pg_database WHERE datname = 'template1') AS locale`,
    );
    expect(row).toEqual({ encoding: "UTF8", timezone: "UTC", connections: "200", listens: "127.0.0.1", locale: "C" });
  });

  it("lets nobody in without its random password", async () => {
    const url = new URL(server.url);
    url.password = "postgres";
    await expect(query(url.href, "SELECT 1")).rejects.toMatchObject({ code: "28P01" });
  });

  it("keeps committed data and its port over kill -9 and restart", async () => {
    await query(server.url, "CREATE TABLE kept AS SELECT 42 AS answer");
    const before = { url: server.url, pid: server.pid };
    await server.kill("SIGKILL");
    expect(server.running).toBe(false);
    await server.restart();
    expect(server.url).toBe(before.url);
    expect(server.pid).not.toBe(before.pid);
    expect(await query(server.url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
  });

  it("can be stopped in its tracks and continued", async () => {
    await server.kill("SIGSTOP");
    expect(server.running).toBe(true);
    await server.kill("SIGCONT");
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  it("runs beside another one on another port, which leaves no process and no folder when stopped", async () => {
    const second = await startPostgres({ durable: false });
    expect(second.port).not.toBe(server.port);
    expect(await query(second.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await second.stop();
    await second.stop();
    expect(isProcessAlive(second.pid)).toBe(false);
    expect(existsSync(second.dataDir)).toBe(false);
  });

  it("names the taken port when a chosen one is taken", async () => {
    await expect(startPostgres({ durable: false, port: server.port })).rejects.toThrow(`port ${server.port} is taken`);
  });

  it("gives each test a database of its own, copied from a template, dropped under open connections", async () => {
    const template = await createTestDatabase(server.url);
    await query(template.url, "CREATE TABLE prepared AS SELECT 7 AS seven");
    const copy = await createTestDatabase(server.url, { template: template.name });
    const open = postgres(copy.url, { max: 1 });
    expect(await open`SELECT seven FROM prepared`).toEqual([{ seven: 7 }]);
    await copy.drop();
    await template.drop();
    await open.end({ timeout: 1 });
    const left = await query(server.url, "SELECT datname FROM pg_database WHERE datname LIKE 'cs\\_test\\_%'");
    expect(left).toEqual([]);
  });
});

describe("a persistent PostgreSQL", () => {
  const folder = mkdtempSync(join(tmpdir(), "devstack-persistent-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("finds its data, under the same password, at the second start", async () => {
    const dataDir = join(folder, "data");
    chmodSync(folder, 0o755); // root's server runs as another user
    const first = await startPostgres({ dataDir });
    await query(first.url, "CREATE TABLE kept AS SELECT 42 AS answer");
    const { password } = new URL(first.url);
    await first.stop();
    const second = await startPostgres({ dataDir });
    try {
      expect(new URL(second.url).password).toBe(password);
      expect(await query(second.url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    } finally {
      await second.stop();
    }
    expect(existsSync(join(dataDir, "PG_VERSION"))).toBe(true);
  });

  // Only root hands its server to another user; for everybody else there is nothing to refuse.
  const rootOnly = process.getuid?.() === 0 ? it : () => undefined;
  rootOnly("says so when root chooses a folder that its user can't reach", async () => {
    const closed = mkdtempSync(join("/tmp", "devstack-closed-")); // mode 0700, owned by root
    try {
      await expect(startPostgres({ dataDir: join(closed, "data") })).rejects.toThrow("can't be reached by the user");
    } finally {
      rmSync(closed, { recursive: true, force: true });
    }
  });
});
