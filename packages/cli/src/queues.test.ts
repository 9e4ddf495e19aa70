import { type RedisServer, startRedis } from "@countersign/devstack";
import { dispatch, openQueues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runLine, startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
let redis: RedisServer;
beforeAll(async () => {
  cli = await startTestCli();
  redis = await startRedis({ env: { ...process.env, REDIS_URL: "" }, appendOnly: false });
});
afterAll(async () => {
  await redis?.stop();
  await cli?.stop();
});

async function planted(redisUrl: string | undefined): Promise<void> {
  const logger = createLogger({ name: "test", destination: { write: () => undefined } });
  const queues = openQueues({ databaseUrl: cli.url, redisUrl, logger });
  try {
    await queues.ready(5_000);
    const job = { queue: "reconcile", tenantId: "acme", kind: "operation", subjectId: "o-1", generation: 0 } as const;
    expect(await dispatch(queues, [job])).toEqual({ added: 1, failed: 0 });
  } finally {
    await queues.close();
  }
}

it("without tables and without Redis says which command makes them", async () => {
  const early = await cli.run(["queues", "list", "--json"]);
  expect([early.code, early.err]).toEqual([1, expect.stringContaining("countersign migrate")]);
});

describe.each(["postgres", "redis"] as const)("queues on %s", (store) => {
  const run = (line: readonly string[]) =>
    runLine(line, { DATABASE_URL: cli.url, ...(store === "redis" ? { REDIS_URL: redis.url } : {}) });

  it("are listed with their depth, their pause and the age of the oldest job", async () => {
    if (store === "postgres") await cli.run(["migrate"]);
    await planted(store === "redis" ? redis.url : undefined);
    const paused = await run(["queues", "pause", "reconcile", "--json"]);
    expect([paused.code, paused.json()]).toEqual([0, { queue: "reconcile", paused: true }]);
    const none = { paused: false, jobs: { waiting: 0, active: 0, delayed: 0, failed: 0 }, oldestWaitingMs: null };
    expect((await run(["queues", "list", "--json"])).json()).toEqual({
      store,
      queues: [
        { queue: "submit", ...none },
        { queue: "reconcile", paused: true, jobs: { ...none.jobs, waiting: 1 }, oldestWaitingMs: expect.any(Number) },
        { queue: "webhook-apply", ...none },
        { queue: "notify", ...none },
      ],
    });
    await run(["queues", "resume", "reconcile"]);
    const shown = await run(["queues", "list"]);
    expect(shown.out).toMatch(/reconcile.*open/);
    expect(shown.out).not.toContain("paused");
  });

  it("refuse a name that is none without repeating it", async () => {
    const wrong = await run(["queues", "pause", "MARKER"]);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("must be one of submit, reconcile")]);
    expect(wrong.err).not.toContain("MARKER");
  });
});

it("a Redis out of reach is exit 3, a URL that is none exit 2", async () => {
  const away = await runLine(["queues", "list"], { DATABASE_URL: cli.url, REDIS_URL: "redis://:MARKER@127.0.0.1:1" });
  expect([away.code, away.err]).toEqual([3, expect.stringContaining("check REDIS_URL")]);
  expect(away.err).not.toContain("MARKER");
  const odd = await runLine(["queues", "list"], { DATABASE_URL: cli.url, REDIS_URL: "redis://a,b" });
  expect(odd.code).toBe(2);
});
