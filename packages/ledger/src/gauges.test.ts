import { afterAll, beforeAll, expect, it } from "vitest";
import { gaugeStatements } from "./gauges.js";
import {
  claimForSubmit,
  holdSending,
  type LedgerGauges,
  markUnknown,
  openTicket,
  pauseConnection,
  readGauges,
  resumeConnection,
} from "./index.js";
import { planSend, planVoid, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

const owner = "0190b5a0-0000-4000-8000-000000000001";

async function claim(operationId: string): Promise<void> {
  const [claimed] = await claimForSubmit(test.ledger, [
    { tenantId: "acme", operationId, owner, leaseMs: 60_000, actor: "test", reason: "claimed" },
  ]);
  if (claimed?.applied !== true) throw new Error("expected a claim");
}

const forget = (operationId: string, dueMs: number) =>
  markUnknown(test.ledger, {
    tenantId: "acme",
    operationId,
    owner,
    dueMs,
    observation: { kind: "ambiguous", cause: "timeout" },
    actor: "test",
    reason: "timeout",
  });

const count = (gauges: LedgerGauges, state: string) =>
  gauges.operations.filter((each) => each.state === state).reduce((sum, each) => sum + each.count, 0);
const ready = (gauges: LedgerGauges, work: string) => gauges.readyOldest.find((each) => each.work === work)?.seconds;

/** Moves a row's times into the past, as if it had been there for so long. */
const backdate = (operationId: string, seconds: number) =>
  test.ledger.sql.begin(async (sql) => {
    await sql`SET LOCAL session_replication_role = replica`;
    await sql`UPDATE signing_operation SET created_at = created_at - make_interval(secs => ${seconds}),
    updated_at = updated_at - make_interval(secs => ${seconds}), first_attempt_at = first_attempt_at - make_interval(secs => ${seconds}),
    not_before = not_before - make_interval(secs => ${seconds}), due_at = due_at - make_interval(secs => ${seconds})
    WHERE operation_id = ${operationId}`;
  });

it("an empty ledger has no ages, and says so by leaving them out", async () => {
  const gauges = await readGauges(test.ledger);
  expect(gauges).toMatchObject({ operations: [], waiting: 0, inbox: [], tickets: [], holds: 0, processes: [] });
  expect(gauges.unknownOldest).toBeUndefined();
  expect(gauges.ended).toBeUndefined();
  expect(gauges.readyOldest.map(({ seconds }) => seconds)).toEqual([0, 0, 0, 0]);
});

it("counts what is open by state, what waits apart, and ages it from the first attempt", async () => {
  const sent = await planSend(test);
  const forgotten = await planSend(test);
  await planSend(test);
  await claim(sent);
  await planVoid(test, sent);
  await claim(forgotten);
  await forget(forgotten, 0);
  await backdate(forgotten, 600);
  const gauges = await readGauges(test.ledger);
  expect([count(gauges, "PLANNED"), count(gauges, "IN_FLIGHT"), count(gauges, "UNKNOWN"), gauges.waiting]).toEqual([
    1, 1, 1, 1,
  ]);
  expect(gauges.unknownOldest).toBeGreaterThan(599);
  expect(ready(gauges, "reconcile")).toBeGreaterThan(599);
  expect(gauges.dueLag.find(({ kind }) => kind === "operation")?.seconds).toBeGreaterThan(599);
});

it("what backs off, is paused or is held is not ready, however old it is", async () => {
  await test.ledger
    .sql`UPDATE signing_operation SET due_at = now(), not_before = now() + interval '1 hour' WHERE state = 'UNKNOWN'`;
  const waiting = await planSend(test);
  await backdate(waiting, 3_000);
  const before = await readGauges(test.ledger);
  expect(ready(before, "reconcile")).toBe(0);
  expect(ready(before, "submit")).toBeGreaterThan(2_999);
  await pauseConnection(test.ledger, "acme", "main", "quota");
  const paused = await readGauges(test.ledger);
  expect(ready(paused, "submit")).toBe(0);
  expect(paused.connections).toMatchObject({ pausedByPerson: 1, pausedForTime: 0, providerDown: 0 });
  await resumeConnection(test.ledger, "acme", "main");
  await holdSending(test.ledger, { tenantId: "acme", action: "SEND", by: "u-1", reason: "wrong template" });
  const held = await readGauges(test.ledger);
  expect(ready(held, "submit")).toBe(0);
  expect(held.holds).toBe(1);
});

it("tickets by kind: how many are open, and how far the worst is past its time", async () => {
  for (const subjectId of ["a", "b"])
    await openTicket(test.ledger.sql, {
      tenantId: "bravo",
      kind: "dead-letter",
      subjectKind: "inbox",
      subjectId,
      reason: "x",
    });
  await test.ledger.sql`UPDATE ticket SET due_at = now() - interval '100 seconds' WHERE subject_id = 'a'`;
  const { tickets } = await readGauges(test.ledger);
  const [deadLetters] = tickets.filter(({ kind }) => kind === "dead-letter");
  expect(deadLetters?.count).toBe(2);
  expect(deadLetters?.overdueSeconds).toBeGreaterThan(99);
  expect(tickets.find(({ kind }) => kind === "connection-paused")).toBeUndefined();
});

it("processes by kind: alive, and since when the last of them is silent", async () => {
  await test.ledger.sql`INSERT INTO worker_process (process_id, kind, host, pid, heartbeat_at) VALUES
    (gen_random_uuid(), 'submit-worker', 'h', 1, now()), (gen_random_uuid(), 'submit-worker', 'h', 2, now() - interval '1 hour'),
    (gen_random_uuid(), 'reconcile-worker', 'h', 3, now() - interval '100 seconds')`;
  const { processes } = await readGauges(test.ledger);
  const of = (kind: string) => processes.find((each) => each.kind === kind);
  expect([of("submit-worker")?.alive, of("reconcile-worker")?.alive]).toEqual([1, 0]);
  expect(of("reconcile-worker")?.silentSeconds).toBeGreaterThan(99);
});

it("ended operations come from the tallies: totals, and the minutes that are not among them yet", async () => {
  const { sql } = test.ledger;
  await sql`INSERT INTO tally_mark VALUES (1, '2026-01-01T00:10Z')`;
  await sql`INSERT INTO tally_total VALUES ('acme', 'main', 'SEND', 'CONFIRMED', 10), ('bravo', 'main', 'SEND', 'CONFIRMED', 5), ('acme', 'main', 'SEND', 'UNKNOWN', 3)`;
  await sql`INSERT INTO tally_minute VALUES
    ('acme', 'main', '2026-01-01T00:09Z', 'SEND', 'IN_FLIGHT', 'CONFIRMED', 100, 0, 0),
    ('acme', 'main', '2026-01-01T00:10Z', 'SEND', 'IN_FLIGHT', 'CONFIRMED', 1, 0, 0)`;
  expect((await readGauges(test.ledger)).ended).toEqual([{ state: "CONFIRMED", action: "SEND", count: 16 }]);
});

/** 20,000 operations with their history and as many events, of which one in fifty is open. */
async function seedMuch(): Promise<void> {
  await test.ledger.sql.begin(async (sql) => {
    // The guards are about what moves a row; these stand in for years of use.
    await sql`SET LOCAL session_replication_role = replica`;
    await sql`
      INSERT INTO signing_operation (tenant_id, operation_id, intent_key, action, connection_id, payload_hash, schema_version, hash_parts,
        provider_key, provider_ref, state, reason, attempt_no, first_attempt_at, quiet_from, due_at, finished_at)
      SELECT 'acme', gen_random_uuid(), 'seed-' || n, 'SEND', 'main', decode(repeat('00', 32), 'hex'), 1, '{}',
        gen_random_uuid(), CASE WHEN n % 50 > 1 THEN 'ref-' || n END,
        CASE n % 50 WHEN 0 THEN 'UNKNOWN' WHEN 1 THEN 'NEEDS_REVIEW' ELSE 'CONFIRMED' END, 'seed', 1, now(), now(),
        CASE WHEN n % 50 = 0 THEN now() END, CASE WHEN n % 50 > 1 THEN now() END
      FROM generate_series(1, 20000) n`;
    await sql`
      INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, reason, actor, attempt_no)
      SELECT tenant_id, operation_id, 1, now(), 'planned', 'seed', 'seed', 0 FROM signing_operation`;
    await sql`
      INSERT INTO webhook_inbox (tenant_id, inbox_id, received_at, connection_id, endpoint_id, provider_event_id, body_sha256, status, due_at)
      SELECT 'acme', gen_random_uuid(), now(), 'main', 'we_x', 'evt-' || n, decode(repeat('00', 32), 'hex'),
        CASE n % 50 WHEN 0 THEN 'RECEIVED' WHEN 1 THEN 'QUARANTINED' ELSE 'APPLIED' END, CASE WHEN n % 50 = 0 THEN now() END
      FROM generate_series(1, 20000) n`;
  });
  for (const table of [
    "signing_operation",
    "operation_event",
    "webhook_inbox",
    "ticket",
    "operation_dependency",
    "work_item",
  ])
    await test.ledger.sql.unsafe(`ANALYZE ${table}`);
}

it("no statement of a reading scans a table that grows", async () => {
  await seedMuch();
  for (const [name, statement] of Object.entries(gaugeStatements)) {
    const plan = await test.ledger.sql.unsafe<{ "QUERY PLAN": string }[]>(`EXPLAIN ${statement}`);
    const lines = plan.map((line) => line["QUERY PLAN"]).join("\n");
    expect(lines, name).not.toMatch(/Seq Scan on (signing_operation|operation_event|webhook_inbox)\b/);
  }
  const gauges = await readGauges(test.ledger);
  expect([count(gauges, "NEEDS_REVIEW"), count(gauges, "UNKNOWN")]).toEqual([400, 401]);
  expect(gauges.inbox.map(({ status, count: events }) => [status, events]).sort()).toEqual([
    ["QUARANTINED", 400],
    ["RECEIVED", 400],
  ]);
});
