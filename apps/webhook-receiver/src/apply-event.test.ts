import { randomUUID } from "node:crypto";
import {
  type DueJob,
  getHistory,
  getOperation,
  listTickets,
  markUnknown,
  recordDelivery,
  type SigningStatus,
} from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { applyInboxEntry } from "./apply-event.js";
import { handleApplyJob } from "./apply-job.js";
import { readDelivery } from "./read-delivery.js";
import {
  applyDue,
  applyParts,
  claim,
  clearInbox,
  confirmAs,
  type EventFields,
  eventBody,
  inbox,
  planSend,
  secretA,
  sentAs,
  startHouse,
  type TestHouse,
} from "./testing.js";

let house: TestHouse;

beforeAll(async () => {
  house = await startHouse();
});
afterAll(() => house.stop());
beforeEach(() => clearInbox(house));

/** Stores an event as the ingress does after verification. */
async function receive(event: EventFields, tenantId = "acme"): Promise<void> {
  await receiveBody(eventBody(event), tenantId);
}

async function receiveBody(body: string, tenantId = "acme"): Promise<void> {
  const endpoint = {
    endpointId: tenantId === "acme" ? house.acme : house.bravo,
    tenantId,
    connectionId: "main",
    provider: "wesign",
    scheme: "elchi",
    gzip: null,
    secrets: [{ secretId: "s", secret: secretA }],
  };
  const contract = house.providers.byName("wesign")?.webhooks.elchi;
  if (contract === undefined) throw new Error("no contract");
  await recordDelivery(house.ledger, readDelivery(endpoint, contract, { body: Buffer.from(body) }, {}, newId()));
}

async function statusOf(ref: string): Promise<SigningStatus | null | undefined> {
  const [row] = await house.ledger.sql<{ status: SigningStatus | null }[]>`
    SELECT status FROM contract_signing WHERE tenant_id = 'acme' AND provider_ref = ${ref}`;
  return row?.status;
}

const newRef = (): string => `sr_${randomUUID()}`;

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations([...items.slice(0, index), ...items.slice(index + 1)])) yield [item, ...rest];
  }
}

describe("events in any order", () => {
  const orders = [...permutations(["sent", "viewed", "signed", "completed"])];

  it("all 24 orders of sent, viewed, signed, completed end COMPLETED, each late one a stored no-op", async () => {
    expect(orders).toHaveLength(24);
    const refs = await Promise.all(
      orders.map(async (order) => {
        const ref = newRef();
        await sentAs(house, ref);
        return { ref, order };
      }),
    );
    for (const { ref, order } of refs) for (const status of order) await receive({ ref, status });
    const outcomes = await applyDue(house, applyParts(house));
    expect(new Set(outcomes)).toEqual(new Set(["applied", "no-op"]));
    for (const { ref } of refs) expect(await statusOf(ref)).toBe("COMPLETED");
    const rows = await inbox(house);
    expect(rows).toHaveLength(96);
    expect(rows.every(({ status }) => status === "APPLIED" || status === "NO_OP")).toBe(true);
  });

  it("two ends for one request: the first stands, a signing-conflict ticket has an owner", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    await receive({ ref, status: "declined" });
    await receive({ ref, status: "completed" });
    expect(await applyDue(house, applyParts(house))).toEqual(["applied", "conflict"]);
    expect(await statusOf(ref)).toBe("DECLINED");
    const tickets = await listTickets(house.ledger, "acme");
    expect(tickets.find(({ kind }) => kind === "signing-conflict")).toMatchObject({
      owner: "contracts-team",
      reason: "completed-after-declined",
    });
  });

  it("an event applied by many workers at once is applied once", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    await receive({ ref, status: "viewed" });
    const [row] = await inbox(house);
    const parts = applyParts(house);
    const work = Array.from({ length: 10 }, () =>
      applyInboxEntry(parts, { tenantId: "acme", inboxId: row?.inbox_id ?? "" }),
    );
    const outcomes = await Promise.all(work);
    expect(outcomes.filter((outcome) => outcome === "applied")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "gone")).toHaveLength(9);
  });
});

const ours = (operationId: string, tenant = "acme") => ({ operation_id: operationId, tenant });

describe("an event with our metadata is evidence", () => {
  it("UNKNOWN: evidence_no + 1, due at once, and a reconcile job is handed over", async () => {
    const operationId = await planSend(house);
    const owner = await claim(house, operationId);
    await markUnknown(house.ledger, {
      tenantId: "acme",
      operationId,
      owner,
      observation: { kind: "ambiguous", cause: "reset" },
      actor: "test",
      reason: "ambiguous",
    });
    await house.ledger
      .sql`UPDATE signing_operation SET due_at = now() + interval '1 hour' WHERE operation_id = ${operationId}`;
    const before = await getOperation(house.ledger, "acme", operationId);
    const jobs: DueJob[] = [];
    await receive({ status: "sent", metadata: ours(operationId) });
    const parts = applyParts(house, { handOff: async (job) => void jobs.push(job) });
    expect(await applyDue(house, parts)).toEqual(["waiting"]);
    const after = await getOperation(house.ledger, "acme", operationId);
    expect(after).toMatchObject({ state: "UNKNOWN", evidenceNo: (before?.evidenceNo ?? 0) + 1, referencesSeen: 1 });
    const [row] = await house.ledger
      .sql`SELECT due_at <= now() AS due FROM signing_operation WHERE operation_id = ${operationId}`;
    expect(row).toEqual({ due: true });
    expect(jobs).toEqual([
      {
        queue: "reconcile",
        tenantId: "acme",
        kind: "operation",
        subjectId: operationId,
        eventNo: after?.eventNo,
        dispatches: 0,
      },
    ]);
  });

  it("PLANNED → UNKNOWN: what already exists is not sent", async () => {
    const operationId = await planSend(house);
    await receive({ status: "sent", metadata: ours(operationId) });
    await applyDue(house, applyParts(house));
    expect(await getOperation(house.ledger, "acme", operationId)).toMatchObject({ state: "UNKNOWN", evidenceNo: 1 });
    const history = await getHistory(house.ledger, "acme", operationId);
    expect(history.at(-1)).toMatchObject({
      fromState: "PLANNED",
      toState: "UNKNOWN",
      reason: "event-with-our-metadata",
    });
  });

  it("IN_FLIGHT: recorded, and the 2xx that comes later confirms on it", async () => {
    const operationId = await planSend(house);
    const owner = await claim(house, operationId);
    const ref = newRef();
    await receive({ ref, status: "sent", metadata: ours(operationId) });
    await applyDue(house, applyParts(house));
    expect(await getOperation(house.ledger, "acme", operationId)).toMatchObject({ state: "IN_FLIGHT", evidenceNo: 1 });
    await confirmAs(house, operationId, owner, ref, 1);
    expect(await applyDue(house, applyParts(house))).toEqual(["no-op"]);
    expect(await statusOf(ref)).toBe("SENT");
  });

  it("metadata of another tenant, of no tenant, or that is no id, is never evidence for anything", async () => {
    const operationId = await planSend(house);
    const theirs = await planSend(house, "bravo");
    await receive({ status: "sent", metadata: ours(operationId, "bravo") });
    await receive({ status: "sent", metadata: { operation_id: operationId } });
    await receive({ status: "sent", metadata: ours("not-an-id") });
    await receive({ status: "sent", metadata: ours(theirs) });
    await receive({ status: "sent", metadata: ours(newId()) });
    expect(await applyDue(house, applyParts(house))).toEqual(Array.from({ length: 5 }, () => "waiting"));
    for (const [tenant, id] of [
      ["acme", operationId],
      ["bravo", theirs],
    ] as const) {
      expect(await getOperation(house.ledger, tenant, id)).toMatchObject({ state: "PLANNED", evidenceNo: 0 });
    }
  });

  it("a reference of one operation with the metadata of another is a conflict with a ticket, and no evidence", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    const other = await planSend(house);
    await receive({ ref, status: "viewed", metadata: ours(other) });
    expect(await applyDue(house, applyParts(house))).toEqual(["conflict"]);
    expect(await getOperation(house.ledger, "acme", other)).toMatchObject({ state: "PLANNED", evidenceNo: 0 });
  });
});

describe("an event whose request isn't known here", () => {
  it("waits, and is applied when its reference is bound", async () => {
    const ref = newRef();
    const operationId = await planSend(house);
    const owner = await claim(house, operationId);
    await receive({ ref, status: "viewed" });
    await receive({ ref, status: "completed" });
    expect(await applyDue(house, applyParts(house))).toEqual(["waiting", "waiting"]);
    expect((await inbox(house)).map(({ status, due_now }) => [status, due_now])).toEqual([
      ["WAITING", false],
      ["WAITING", false],
    ]);
    await confirmAs(house, operationId, owner, ref);
    expect(await applyDue(house, applyParts(house))).toEqual(["applied", "applied"]);
    expect(await statusOf(ref)).toBe("COMPLETED");
  });

  it("is quarantined after its wait with an owned ticket, without a failed application, and applied if bound even then", async () => {
    const ref = newRef();
    const operationId = await planSend(house);
    const owner = await claim(house, operationId);
    await receive({ ref, status: "completed" });
    const parts = applyParts(house, { eventWaitMs: 1 });
    expect(await applyDue(house, parts)).toEqual(["waiting"]);
    await expect.poll(async () => (await inbox(house))[0]?.due_now).toBe(true);
    expect(await applyDue(house, parts)).toEqual(["quarantined"]);
    const [row] = await inbox(house);
    expect(row).toMatchObject({ status: "QUARANTINED", outcome: "unmapped-reference", failures: 0 });
    const tickets = await listTickets(house.ledger, "acme");
    expect(tickets.find(({ subjectId }) => subjectId === row?.inbox_id)).toMatchObject({ kind: "quarantine" });
    await confirmAs(house, operationId, owner, ref);
    expect(await applyDue(house, parts)).toEqual(["applied"]);
    expect(await statusOf(ref)).toBe("COMPLETED");
  });
});

describe("what can't be applied", () => {
  it("fails with a back-off, a bounded number of times, then is DEAD with a ticket and its body kept", async () => {
    await receive({ status: "viewed" });
    const parts = applyParts(house, { providerByName: () => undefined, maxFailures: 3 });
    const [row] = await inbox(house);
    const id = { tenantId: "acme", inboxId: row?.inbox_id ?? "" };
    expect(await applyInboxEntry(parts, id)).toBe("failed");
    expect((await inbox(house))[0]).toMatchObject({ status: "RECEIVED", failures: 1, outcome: "scheme-unknown" });
    expect([await applyInboxEntry(parts, id), await applyInboxEntry(parts, id)]).toEqual(["failed", "dead"]);
    expect((await inbox(house))[0]).toMatchObject({ status: "DEAD", due_now: false });
    expect(await applyInboxEntry(parts, id)).toBe("gone");
    expect(await house.ledger.sql`SELECT 1 FROM webhook_body`).toHaveLength(1);
    const tickets = await listTickets(house.ledger, "acme");
    expect(tickets.find(({ subjectId }) => subjectId === id.inboxId)).toMatchObject({ kind: "dead-letter" });
  });

  it("a body that no longer opens is a failure too, not a crash", async () => {
    await receive({ status: "viewed" });
    await house.ledger.sql`UPDATE webhook_body SET bytes = '\\x00', key_id = 'another'`;
    expect(await applyDue(house, applyParts(house))).toEqual(["failed"]);
    expect((await inbox(house))[0]).toMatchObject({ failures: 1, outcome: "decryption-failed" });
  });

  it("a documented type without meaning is a no-op; it still needs its request", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    await receive({ ref, type: "signing_request.reminded" });
    expect(await applyDue(house, applyParts(house))).toEqual(["no-op"]);
    expect(await statusOf(ref)).toBe("SENT");
  });

  it("an event whose row the due loop holds at that moment is applied as soon as it lets go", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    await receive({ ref, status: "viewed" });
    const holder = await house.ledger.sql.reserve();
    await holder`BEGIN`;
    await holder`SELECT 1 FROM webhook_inbox FOR UPDATE`;
    const applying = applyDue(house, applyParts(house));
    let waiting = 0;
    while (waiting === 0) {
      const locked = await house.ledger.sql`
        SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%webhook_inbox%'`;
      waiting = locked.length;
    }
    await holder`COMMIT`;
    holder.release();
    expect(await applying).toEqual(["applied"]);
    expect(await statusOf(ref)).toBe("VIEWED");
  });

  it("an application cut off in the middle leaves the row due and nothing half-applied", async () => {
    const ref = newRef();
    await sentAs(house, ref);
    await receive({ ref, status: "viewed" });
    const holder = await house.ledger.sql.reserve();
    await holder`BEGIN`;
    await holder`SELECT 1 FROM contract_signing WHERE provider_ref = ${ref} FOR UPDATE`;
    const applying = applyDue(house, applyParts(house));
    let pids: { pid: number }[] = [];
    while (pids.length === 0) {
      pids = await house.ledger.sql<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%contract_signing%'`;
    }
    for (const { pid } of pids) await house.ledger.sql`SELECT pg_cancel_backend(${pid})`;
    expect(await applying).toEqual(["failed"]);
    await holder`ROLLBACK`;
    holder.release();
    expect(await statusOf(ref)).toBe("SENT");
    expect((await inbox(house))[0]).toMatchObject({ status: "RECEIVED", failures: 1 });
    await house.ledger.sql`UPDATE webhook_inbox SET due_at = now()`;
    expect(await applyDue(house, applyParts(house))).toEqual(["applied"]);
    expect(await statusOf(ref)).toBe("VIEWED");
  });

  it("a job of another kind is refused; one whose row is gone does nothing", async () => {
    const parts = applyParts(house);
    await expect(handleApplyJob(parts, { tenantId: "acme", kind: "operation", subjectId: newId() })).rejects.toThrow(
      "unknown-kind",
    );
    await handleApplyJob(parts, { tenantId: "acme", kind: "inbox", subjectId: newId() });
  });

  it("no reference, event id or address reaches a log line", async () => {
    await receive({ id: "evt_MARKER", ref: "sr_MARKER", metadata: { note: "marker@example.com" } });
    const parts = applyParts(house, { providerByName: () => undefined, maxFailures: 1 });
    await applyDue(house, parts);
    expect(parts.lines.length).toBeGreaterThan(0);
    expect(parts.lines.join("\n")).not.toMatch(/MARKER|marker@/);
  });
});
