import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getHistory, getOperation, recordEvidence } from "./index.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  confirmFound,
  conflict,
  markUnknown,
  refuse,
  supersedePlanned,
} from "./transitions.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

const owner = randomUUID();
const base = (operationId: string) => ({
  tenantId: "acme",
  operationId,
  owner,
  leaseMs: 60_000,
  evidenceNo: 0,
  observation: { kind: "ambiguous" },
  actor: "test",
  reason: "test",
});
const late = (operationId: string, ref?: string) => ({
  tenantId: "acme",
  operationId,
  attemptNo: 1,
  ...(ref === undefined ? {} : { providerRef: ref }),
  source: "late-answer" as const,
  actor: "test",
  reason: "late-answer",
});
const view = (id: string) => getOperation(test.ledger, "acme", id);
const duplicateTickets = (id: string) =>
  test.ledger.sql`SELECT reason FROM ticket WHERE kind = 'duplicate' AND subject_id = ${id}`;

async function inFlight(): Promise<string> {
  const id = await planSend(test);
  await claimForSubmit(test.ledger, [base(id)]);
  return id;
}

async function unknown(): Promise<string> {
  const id = await inFlight();
  await markUnknown(test.ledger, { ...base(id), dueMs: 60_000 });
  return id;
}

describe("evidence that shows a request, by state", () => {
  it("PLANNED becomes UNKNOWN, due at once", async () => {
    const id = await planSend(test);
    expect(await recordEvidence(test.ledger.sql, late(id, `sr_${id}`))).toMatchObject({
      fromState: "PLANNED",
      state: "UNKNOWN",
    });
    expect(await view(id)).toMatchObject({ state: "UNKNOWN", evidenceNo: 1, referencesSeen: 1 });
  });

  it("IN_FLIGHT is recorded: the confirm compares and misses, a refusal cannot end it", async () => {
    const id = await inFlight();
    await recordEvidence(test.ledger.sql, { ...late(id, `sr_${id}`), source: "webhook" });
    const [stale] = await confirm(test.ledger, [
      { ...base(id), providerRef: `sr_${id}`, observation: { kind: "accepted" } },
    ]);
    expect(stale).toMatchObject({ applied: false, found: { state: "IN_FLIGHT", evidenceNo: 1, leaseOwner: owner } });
    expect((await refuse(test.ledger, { ...base(id), evidenceNo: 1 })).applied).toBe(false);
    const [again] = await confirm(test.ledger, [
      { ...base(id), evidenceNo: 1, providerRef: `sr_${id}`, basis: "proof", observation: { kind: "accepted" } },
    ]);
    expect(again?.applied).toBe(true);
  });

  it("UNKNOWN is looked at at once, however far away its next look was", async () => {
    const id = await unknown();
    expect((await claimForReconcile(test.ledger, base(id))).applied).toBe(false);
    await recordEvidence(test.ledger.sql, late(id, `sr_${id}`));
    expect((await claimForReconcile(test.ledger, base(id))).applied).toBe(true);
  });

  it("RECONCILING: the running verdict misses", async () => {
    const id = await unknown();
    await test.ledger.sql`UPDATE signing_operation SET not_before = NULL WHERE operation_id = ${id}`;
    await claimForReconcile(test.ledger, base(id));
    await recordEvidence(test.ledger.sql, late(id, `sr_${id}`));
    const verdict = { ...base(id), providerRef: "sr_other", basis: "proof" as const };
    expect((await confirmFound(test.ledger, verdict)).applied).toBe(false);
    expect((await conflict(test.ledger, base(id))).applied).toBe(false);
  });

  it("CONFIRMED: the same reference is a no-op, another one opens one duplicate ticket", async () => {
    const id = await inFlight();
    await confirm(test.ledger, [
      { ...base(id), providerRef: `sr_${id}`, basis: "proof", observation: { kind: "accepted" } },
    ]);
    const before = await view(id);
    expect(await recordEvidence(test.ledger.sql, late(id, `sr_${id}`))).toBeUndefined();
    expect(await view(id)).toEqual(before);
    await recordEvidence(test.ledger.sql, late(id, `sr_twin_${id}`));
    await recordEvidence(test.ledger.sql, late(id, `sr_twin_${id}`));
    expect(await duplicateTickets(id)).toMatchObject([{ reason: "another-reference" }]);
    expect((await view(id))?.state).toBe("CONFIRMED");
  });

  it("TERMINAL_FAILED and SUPERSEDED: failed, yet exists: a duplicate ticket, the row keeps its state", async () => {
    const failed = await inFlight();
    await refuse(test.ledger, { ...base(failed), observation: { kind: "refused" } });
    const superseded = await planSend(test);
    await supersedePlanned(test.ledger, base(superseded));
    for (const id of [failed, superseded]) {
      const state = (await view(id))?.state;
      await recordEvidence(test.ledger.sql, late(id, `sr_${id}`));
      expect(await duplicateTickets(id)).toMatchObject([{ reason: "failed-yet-exists" }]);
      expect((await view(id))?.state).toBe(state);
    }
  });
});

it("a late answer without a reference restarts quiescence and forgets the looks", async () => {
  const id = await unknown();
  await test.ledger
    .sql`UPDATE signing_operation SET absence_count = 1, absence_began_at = now() WHERE operation_id = ${id}`;
  const before = await view(id);
  await recordEvidence(test.ledger.sql, late(id));
  const after = await view(id);
  expect([before?.absenceCount, after?.absenceCount]).toEqual([1, 0]);
  expect(after?.evidenceNo).toBe((before?.evidenceNo ?? 0) + 1);
  expect(Date.parse(after?.quietFrom ?? "")).toBeGreaterThan(Date.parse(before?.quietFrom ?? ""));
});

it("a reference of another operation is refused whole: neither row changes", async () => {
  const first = await unknown();
  const second = await unknown();
  await recordEvidence(test.ledger.sql, late(first, "sr_shared"));
  const before = await view(second);
  await expect(recordEvidence(test.ledger.sql, late(second, "sr_shared"))).rejects.toMatchObject({ code: "CS004" });
  expect(await view(second)).toEqual(before);
});

it("evidence never crosses tenants", async () => {
  const id = await unknown();
  expect(await recordEvidence(test.ledger.sql, { ...late(id, "sr_x"), tenantId: "bravo" })).toBeUndefined();
  expect(await getHistory(test.ledger, "bravo", id)).toEqual([]);
});
