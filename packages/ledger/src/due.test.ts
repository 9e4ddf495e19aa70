import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  claimForSubmit,
  type DueJob,
  listTickets,
  makeDueAgain,
  postpone,
  raiseGeneration,
  reportPoisoned,
  sweepExpiredLeases,
  visitDueOperations,
} from "./index.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
beforeEach(async () => {
  // Whatever an earlier test left is not due for a day.
  await test.ledger.sql`UPDATE signing_operation SET due_at = now() + interval '1 day' WHERE due_at IS NOT NULL`;
});
afterAll(async () => {
  await test.stop();
});

const claim = (operationId: string, leaseMs: number) =>
  claimForSubmit(test.ledger, [
    {
      tenantId: "acme",
      operationId,
      owner: "0190b5a0-0000-4000-8000-000000000001",
      leaseMs,
      actor: "test",
      reason: "claimed",
    },
  ]);

async function planMany(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await planSend(test));
  return ids;
}

it("twenty visitors of two hundred due rows: each row is visited once, and none waits on another", async () => {
  const ids = await planMany(200);
  const visits = await Promise.all(Array.from({ length: 20 }, () => visitDueOperations(test.ledger, 25, 60_000)));
  const visited = visits.flat().map((job) => job.subjectId);
  expect(new Set(visited).size).toBe(visited.length);
  const rest = await visitDueOperations(test.ledger, 500, 60_000);
  expect([...visited, ...rest.map((job) => job.subjectId)].sort()).toEqual([...ids].sort());
});

it("what was visited is due again after the redispatch interval, and at once where its queue was out of reach", async () => {
  const [id = ""] = await planMany(1);
  const jobs = await visitDueOperations(test.ledger, 10, 60_000);
  expect(jobs).toMatchObject([{ subjectId: id, queue: "submit", eventNo: 1, dispatches: 0 }]);
  expect(await visitDueOperations(test.ledger, 10, 60_000)).toEqual([]);
  await makeDueAgain(test.ledger.sql, jobs, 0);
  expect(await visitDueOperations(test.ledger, 10, 60_000)).toMatchObject([{ subjectId: id }]);
});

it("a new generation is made once per lost job, and none for a row that has moved on", async () => {
  await planMany(1);
  const [job] = await visitDueOperations(test.ledger, 10, 60_000);
  if (job === undefined) throw new Error("nothing was due");
  const raised = await Promise.all(Array.from({ length: 10 }, () => raiseGeneration(test.ledger.sql, [job])));
  expect(raised.flat()).toEqual([{ ...job, dispatches: 1 }]);
  await claim(job.subjectId, 60_000);
  expect(await raiseGeneration(test.ledger.sql, [{ ...job, dispatches: 1 }])).toEqual([]);
});

it("ten sweepers of fifty expired leases: each becomes UNKNOWN once, and is handed to reconcile", async () => {
  const ids = await planMany(50);
  for (const id of ids) await claim(id, 1);
  await test.ledger.sql`SELECT pg_sleep(0.02)`;
  const swept = await Promise.all(Array.from({ length: 10 }, () => sweepExpiredLeases(test.ledger, 100, 60_000)));
  const jobs = swept.flat();
  expect(jobs.map((job) => job.subjectId).sort()).toEqual([...ids].sort());
  expect(new Set(jobs.map((job) => job.queue))).toEqual(new Set(["reconcile"]));
  const [row] = await test.ledger.sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM operation_event WHERE reason = 'lease-expired'`;
  expect(row?.count).toBe(50);
});

it("a lease that stands is not swept, whatever clock a worker has", async () => {
  const [id = ""] = await planMany(1);
  await claim(id, 60_000);
  await test.ledger.sql`UPDATE signing_operation SET due_at = now() WHERE operation_id = ${id}`;
  expect(await sweepExpiredLeases(test.ledger, 100, 60_000)).toEqual([]);
});

it("a postponed row is not due before its time; a live one that has moved on is left alone", async () => {
  const [id = ""] = await planMany(1);
  await postpone(test.ledger, { tenantId: "acme", operationId: id, state: "PLANNED", waitMs: 60_000 });
  expect(await visitDueOperations(test.ledger, 10, 60_000)).toEqual([]);
  await claim(id, 30_000);
  await postpone(test.ledger, { tenantId: "acme", operationId: id, state: "PLANNED", waitMs: 0 });
  expect(await sweepExpiredLeases(test.ledger, 10, 60_000)).toEqual([]);
});

it("a row that never moves is reported once, to its owner", async () => {
  const [id = ""] = await planMany(1);
  const job: DueJob = {
    queue: "submit",
    tenantId: "acme",
    kind: "operation",
    subjectId: id,
    eventNo: 1,
    dispatches: 30,
  };
  await reportPoisoned(test.ledger, job, 30);
  await reportPoisoned(test.ledger, job, 31);
  const tickets = (await listTickets(test.ledger, "acme")).filter((ticket) => ticket.subjectId === id);
  expect(tickets).toMatchObject([{ kind: "dead-letter", owner: "contracts-team" }]);
});
