import { randomBytes, randomUUID } from "node:crypto";
import { type RedisServer, startRedis } from "@countersign/devstack";
import {
  beat,
  createConnection,
  createTenant,
  createWebhookEndpoint,
  migrate,
  pauseByPerson,
} from "@countersign/ledger";
import { migrateQueues } from "@countersign/queue";
import { type RunningSimulator, startSimulator } from "@countersign/simulator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Finding } from "./doctor/finding.js";
import { type Ran, runLine, startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
let redis: RedisServer;
let simulator: RunningSimulator;
const apiKey = "wsk_MARKER-KEY";

beforeAll(async () => {
  cli = await startTestCli();
  redis = await startRedis({ env: { ...process.env, REDIS_URL: "" }, appendOnly: false });
  simulator = await startSimulator({ workspaces: [{ name: "w", keys: [apiKey] }] });
});
afterAll(async () => {
  await simulator?.stop();
  await redis?.stop();
  await cli?.stop();
});

const environment = (more: Record<string, string> = {}) => ({
  DATABASE_URL: cli.url,
  COUNTERSIGN_ENCRYPTION_KEY: cli.key,
  ...more,
});

interface Diagnosed {
  code: number;
  ran: Ran;
  of(check: string, subject?: string): Finding | undefined;
}

async function doctor(more: readonly string[] = [], env = environment()): Promise<Diagnosed> {
  const ran = await runLine(["doctor", "--json", ...more], env);
  const report: { findings?: Finding[] } = JSON.parse(ran.out);
  const findings = report.findings ?? [];
  return {
    code: ran.code,
    ran,
    of: (check, subject) => findings.find((each) => each.check === check && each.subject === subject),
  };
}

const connected = (connectionId: string, credential: string, baseUrl = simulator.url) =>
  createConnection(cli.ledger, { tenantId: "acme", connectionId, provider: "wesign", baseUrl, credential });

const alive = (kind: string) => beat(cli.ledger, { processId: randomUUID(), kind, host: "h", pid: 1 });

const everybodyLives = async () => {
  for (const kind of ["submit-worker", "reconcile-worker", "webhook-apply"]) await alive(kind);
};

it("an empty database is missing its migrations, and says what to run", async () => {
  const { code, of } = await doctor();
  expect(code).toBe(1);
  expect(of("database")).toMatchObject({ status: "ok", what: expect.stringContaining("PostgreSQL") });
  expect(of("migrations")).toMatchObject({ status: "fail", remedy: "countersign migrate" });
  expect(of("queues")).toMatchObject({ status: "fail", what: expect.stringContaining("countersign migrate") });
});

describe("on a migrated database", () => {
  beforeAll(async () => {
    await migrate(cli.url);
    await migrateQueues(cli.url);
    await createTenant(cli.ledger, { tenantId: "acme", ticketOwners: { default: "contracts" } });
    await createTenant(cli.ledger, { tenantId: "bravo", ticketOwners: { default: "contracts" } });
    await connected("main", apiKey);
  });

  it("workers that never lived fail, each by its kind; the rest is well", async () => {
    const { code, of } = await doctor();
    expect(code).toBe(1);
    for (const kind of ["submit-worker", "reconcile-worker", "webhook-apply"]) {
      expect(of("worker", kind)).toMatchObject({ status: "fail", what: "none has ever said that it lives" });
    }
    expect(of("worker", "webhook-ingress")).toBeUndefined();
  });

  it("is healthy and exits 0 once everything runs; the provider was read and nothing made there", async () => {
    await everybodyLives();
    const { code, of, ran } = await doctor();
    expect(ran.json()).toMatchObject({ healthy: true, counts: { fail: 0, warn: 0 } });
    expect(code).toBe(0);
    for (const [check, subject] of [
      ["migrations", undefined],
      ["database-clock", undefined],
      ["redis", undefined],
      ["queue", "submit"],
      ["encryption-key", "acme"],
      ["ticket-owners", "acme"],
      ["provider", "acme/main"],
      ["outbox", "operations"],
      ["outbox", "inbox"],
      ["outbox", "work items"],
    ] as const) {
      expect([check, subject, of(check, subject)?.status]).toEqual([check, subject, "ok"]);
    }
    expect(simulator.audit()).toMatchObject({ totals: { requests: 0 }, sandbox: { requests: 0 } });
  });

  it("--offline asks no provider and says so", async () => {
    expect((await doctor(["--offline"])).of("provider", "acme/main")).toMatchObject({
      status: "skip",
      what: "not asked (--offline)",
    });
  });

  it("reads as lines, each remedy below its finding, with a sum at the end", async () => {
    await everybodyLives();
    await connected("bad-key", "wsk_wrong-MARKER");
    const { code, out } = await runLine(["doctor", "--tenant", "acme"], environment());
    expect(code).toBe(1);
    expect(out).toMatch(/^ok {4}database: PostgreSQL/m);
    expect(out).toMatch(/^fail {2}provider acme\/bad-key: .*\n {6}→ .*connection set-key --tenant acme/m);
    expect(out).toMatch(/\d+ ok, 0 warn, 1 fail, 0 skip$/);
    expect(out).not.toContain("MARKER");
  });

  it("tells a provider out of reach from one that refuses the key; one that is paused is not asked", async () => {
    await connected("nobody", apiKey, "http://127.0.0.1:1");
    await connected("paused", apiKey, "http://127.0.0.1:1");
    await pauseByPerson(cli.ledger, { tenantId: "acme", connectionId: "paused", who: "u-1", why: "test" });
    const { of } = await doctor(["--tenant", "acme"]);
    expect(of("provider", "acme/bad-key")).toMatchObject({
      status: "fail",
      what: expect.stringContaining("unauthorized"),
    });
    expect(of("provider", "acme/nobody")).toMatchObject({
      status: "fail",
      what: expect.stringContaining("ECONNREFUSED"),
    });
    expect(of("provider", "acme/paused")).toMatchObject({ status: "warn", what: expect.stringContaining("paused") });
  });

  it("one tenant's look leaves the others out, and a tenant that is none is refused", async () => {
    await everybodyLives();
    const { ran, code } = await doctor(["--tenant", "bravo"]);
    expect(code).toBe(0);
    expect(ran.out).not.toContain("acme");
    expect((await doctor(["--tenant", "nobody"])).ran.json()).toMatchObject({ error: { code: "not-found" } });
  });

  it("a webhook endpoint without a verified delivery is a warning, and from then on an ingress must live", async () => {
    const made = { tenantId: "acme", connectionId: "main", scheme: "elchi", secret: "whsec_MARKER" };
    const { endpointId } = await createWebhookEndpoint(cli.ledger, made);
    const subject = `acme/main/${endpointId.slice(0, 9)}…`;
    const before = await doctor(["--offline"]);
    expect(before.of("webhook", subject)).toMatchObject({ status: "warn", what: "no delivery has ever verified" });
    expect(before.of("worker", "webhook-ingress")?.status).toBe("fail");
    expect(before.ran.out).not.toContain(endpointId);
    await alive("webhook-ingress");
    await cli.ledger.sql`UPDATE webhook_endpoint SET last_verified_at = now() WHERE endpoint_id = ${endpointId}`;
    const after = await doctor(["--offline"]);
    expect(after.of("webhook", subject)).toMatchObject({ status: "ok", what: expect.stringMatching(/ \d+ s old$/) });
    expect(after.of("worker", "webhook-ingress")?.status).toBe("ok");
  });

  it("another encryption key opens no tenant, and no provider is asked in vain", async () => {
    const other = environment({ COUNTERSIGN_ENCRYPTION_KEY: randomBytes(32).toString("base64") });
    const { code, of } = await doctor(["--tenant", "acme"], other);
    expect(code).toBe(1);
    expect(of("encryption-key", "acme")).toMatchObject({ status: "fail", remedy: expect.stringContaining("_KEY") });
    expect(of("provider", "acme/main")).toBeUndefined();
  });

  it("a ticket kind with a blank owner fails, with the command that names one", async () => {
    await cli.ledger.sql`UPDATE tenant SET ticket_owners = ticket_owners || '{"aged":" "}' WHERE tenant_id = 'bravo'`;
    expect((await doctor(["--tenant", "bravo"])).of("ticket-owners", "bravo")).toMatchObject({
      status: "fail",
      what: "nobody owns aged",
      remedy: "countersign tenants set-owner bravo --owner-for aged=<team>",
    });
    await cli.run(["tenants", "set-owner", "bravo", "--owner", "contracts"]);
  });

  it("a worker that has fallen silent, and rows that nobody takes up, fail", async () => {
    await cli.ledger
      .sql`UPDATE worker_process SET heartbeat_at = now() - interval '1 hour' WHERE kind = 'submit-worker'`;
    await cli.ledger.sql`
      INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after)
      VALUES ('bravo', ${randomUUID()}, 'poll', 'k', 's', now() - interval '10 minutes')`;
    const { of } = await doctor(["--offline"]);
    expect(of("worker", "submit-worker")).toMatchObject({
      status: "fail",
      what: expect.stringContaining("none lives"),
    });
    expect(of("outbox", "work items")).toMatchObject({ status: "fail", what: expect.stringContaining("10 min") });
  });
});

describe("with Redis", () => {
  it("tells version, policy and clock; one that evicts fails with its remedy", async () => {
    const { of } = await doctor(["--offline"], environment({ REDIS_URL: redis.url }));
    expect(of("redis")?.what).toMatch(/^version \d/);
    expect(of("redis-policy")).toMatchObject({ status: "ok" });
    expect(of("redis-clock")).toMatchObject({ status: "ok" });
    expect(of("queue", "submit")).toMatchObject({ status: "ok", what: "none waits" });
  });

  it("a Redis out of reach fails, and everything else is still looked at", async () => {
    const { code, of } = await doctor(["--offline"], environment({ REDIS_URL: "redis://:MARKER@127.0.0.1:1" }));
    expect(code).toBe(1);
    expect(of("redis")).toMatchObject({ status: "fail", what: "it can't be reached" });
    expect(of("encryption-key", "acme")?.status).toBe("ok");
  });
});

it("a database out of reach is exit 3, and Redis is still looked at", async () => {
  const away = environment({ DATABASE_URL: "postgres://u:MARKER@127.0.0.1:1/d", REDIS_URL: redis.url });
  const { code, of, ran } = await doctor([], away);
  expect(code).toBe(3);
  expect(of("database")).toMatchObject({ status: "fail", what: expect.stringContaining("check DATABASE_URL") });
  expect(of("redis-policy")?.status).toBe("ok");
  expect(ran.out).not.toContain("MARKER");
});

describe("connection test", () => {
  const line = (connection: string) => ["connection", "test", "--tenant", "acme", "--connection", connection, "--json"];

  it("answers 0 where the provider answers, also while the connection is paused", async () => {
    await cli.run(["connection", "pause", "--tenant", "acme", "--connection", "main", "--who", "u-1", "--why", "x"]);
    const tested = await cli.run(line("main"));
    expect([tested.code, tested.json()]).toMatchObject([0, { connectionId: "main", kind: "answered", by: "metadata" }]);
    await cli.run(["connection", "resume", "--tenant", "acme", "--connection", "main", "--who", "u-1"]);
  });

  it("reads by a reference where the provider has no list", async () => {
    simulator.configure({ mode: "poor" });
    const tested = await cli.run(line("main"));
    simulator.configure({ mode: "normal" });
    expect([tested.code, tested.json()]).toMatchObject([0, { by: "reference" }]);
  });

  it("is 1 for a refused key and 3 for a provider out of reach, with the remedy", async () => {
    const refused = await cli.run(line("bad-key"));
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("connection set-key")]);
    const away = await cli.run(line("nobody"));
    expect([away.code, away.err]).toEqual([3, expect.stringContaining("base URL")]);
    expect(refused.err + away.err).not.toContain("MARKER");
  });
});
