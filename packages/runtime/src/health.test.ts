import { afterEach, describe, expect, it } from "vitest";
import { CheckFailed, type HealthServer, readiness, startHealthServer } from "./health.js";
import { createMetrics } from "./metrics.js";

let server: HealthServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function get(path: string, init?: RequestInit): Promise<{ status: number; body: string }> {
  const response = await fetch(`http://127.0.0.1:${server?.port}${path}`, init);
  return { status: response.status, body: await response.text() };
}

describe("readiness", () => {
  it("names every check, and one that hangs hides no other", async () => {
    const state = await readiness([
      { name: "ledger", run: async () => {} },
      { name: "queue", run: () => Promise.reject(new CheckFailed("no-progress")) },
      { name: "provider", run: () => new Promise(() => {}), timeoutMs: 5 },
      {
        name: "socket",
        run: () => Promise.reject(Object.assign(new Error("10.0.0.1 refused"), { code: "ECONNREFUSED" })),
      },
    ]);
    expect(state).toMatchObject({
      ready: false,
      checks: {
        ledger: { ok: true },
        queue: { ok: false, reason: "no-progress" },
        provider: { ok: false, reason: "timeout" },
        socket: { ok: false, reason: "ECONNREFUSED" },
      },
    });
    expect(JSON.stringify(state)).not.toContain("10.0.0.1");
  });

  it("turns a check that throws before it returns into a red one", async () => {
    const check = {
      name: "bad",
      run: () => {
        throw new TypeError("x");
      },
    };
    expect(await readiness([check])).toMatchObject({ ready: false, checks: { bad: { reason: "TypeError" } } });
  });
});

describe("startHealthServer", () => {
  it("answers liveness, readiness by its checks, and metrics", async () => {
    let ready = false;
    const metrics = createMetrics("test");
    metrics.counter({ name: "claims_total", help: "claims", labels: ["outcome"] }).inc({ outcome: "won" });
    const check = { name: "queue", run: () => (ready ? Promise.resolve() : Promise.reject(new CheckFailed("down"))) };
    server = await startHealthServer({ host: "127.0.0.1", port: 0, checks: [check], metrics });
    expect(await get("/healthz")).toEqual({ status: 200, body: '{"ok":true}' });
    expect((await get("/readyz")).status).toBe(503);
    ready = true;
    expect((await get("/readyz?x=1")).status).toBe(200);
    expect((await get("/metrics")).body).toContain('claims_total{outcome="won",process="test"} 1');
    expect((await get("/other")).status).toBe(404);
    expect((await get("/healthz", { method: "POST" })).status).toBe(405);
  });
});
