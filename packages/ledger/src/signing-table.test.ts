import { randomBytes, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  applyEvent,
  applyPolled,
  claimWork,
  createWebhookEndpoint,
  effectOf,
  endStatuses,
  openStatuses,
  readPoll,
  recordDelivery,
  type SigningStatus,
  schedulePolls,
  signingStatuses,
} from "./index.js";
import { signingTable } from "./signing-table-doc.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
let endpointId = "";
beforeAll(async () => {
  test = await startTestLedger();
  const made = await createWebhookEndpoint(test.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "elchi",
    secret: "whsec_test",
  });
  endpointId = made.endpointId;
});
afterAll(async () => {
  await test.stop();
});

const key = { tenantId: "acme", connectionId: "main" };

/** A request of ours in a status (null: spoken of, but bound to nothing). */
async function request(status: SigningStatus | null): Promise<string> {
  const providerRef = `sr_${randomUUID()}`;
  const operationId = status === null ? null : await planSend(test);
  await test.ledger.sql`
    INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status)
    VALUES ('acme', 'main', ${providerRef}, ${operationId}, ${status})`;
  if (operationId !== null && status !== null) {
    await test.ledger.sql`
      INSERT INTO operation_reference (tenant_id, connection_id, provider_ref, operation_id, role, source, attempt_no)
      VALUES ('acme', 'main', ${providerRef}, ${operationId}, 'kept', 'answer', 1)`;
  }
  return providerRef;
}

async function stored(providerRef: string, hint = false): Promise<string> {
  const recorded = await recordDelivery(test.ledger, {
    ...key,
    endpointId,
    providerEventId: `evt_${randomUUID()}`,
    eventType: "any",
    providerRef,
    hint,
    body: randomBytes(16),
  });
  if (recorded.kind !== "stored") throw new Error("expected a new event");
  return recorded.inboxId;
}

const event = (inboxId: string, providerRef: string, status: SigningStatus | undefined, hint = false) => ({
  ...key,
  inboxId,
  providerRef,
  ...(status === undefined ? {} : { status }),
  hint,
  eventType: "any",
  eventWaitMs: 60_000,
  waitPassed: false,
});

const statusOf = async (providerRef: string) =>
  (
    await test.ledger.sql<{ status: SigningStatus | null }[]>`
    SELECT status FROM contract_signing WHERE provider_ref = ${providerRef}`
  )[0]?.status;
const inboxRow = async (inboxId: string) =>
  (
    await test.ledger.sql<{ status: string; outcome: string; dueAt: string | null }[]>`
    SELECT status, outcome, due_at AS "dueAt" FROM webhook_inbox WHERE inbox_id = ${inboxId}`
  )[0];
const conflictTickets = async (subjectId: string) =>
  await test.ledger.sql`SELECT 1 FROM ticket WHERE kind = 'signing-conflict' AND subject_id = ${subjectId}`;

const settledAs = { applied: "APPLIED", "no-op": "NO_OP", conflict: "CONFLICT" } as const;
const pairs = signingStatuses.flatMap((current) => signingStatuses.map((story) => [current, story] as const));

describe("every state and every event, on the database", () => {
  it.each(pairs)("%s, told %s", async (current, story) => {
    const effect = effectOf(current, story);
    const providerRef = await request(current);
    const inboxId = await stored(providerRef);
    const first = await applyEvent(test.ledger, event(inboxId, providerRef, story));
    expect(first.kind).toBe(effect);
    expect(await statusOf(providerRef)).toBe(effect === "applied" ? story : current);
    expect(await inboxRow(inboxId)).toMatchObject({ status: settledAs[effect], dueAt: null });
    expect(await conflictTickets(inboxId)).toHaveLength(effect === "conflict" ? 1 : 0);
    // Once more: nothing is applied twice.
    expect(await applyEvent(test.ledger, event(inboxId, providerRef, story))).toEqual({ kind: "gone" });
    const again = await stored(providerRef);
    const second = await applyEvent(test.ledger, event(again, providerRef, story));
    expect(second.kind).toBe(effect === "applied" ? "no-op" : effect);
  });

  it.each(signingStatuses)("%s, told something without meaning for the status", async (current) => {
    const providerRef = await request(current);
    const inboxId = await stored(providerRef);
    expect(await applyEvent(test.ledger, event(inboxId, providerRef, undefined))).toMatchObject({ kind: "no-op" });
    expect(await statusOf(providerRef)).toBe(current);
    expect(await inboxRow(inboxId)).toMatchObject({ status: "NO_OP", outcome: "no-meaning-for-status" });
  });

  it.each(signingStatuses)(
    "bound to nothing, told %s: waits, then is a person's, and is applied once bound",
    async (story) => {
      const providerRef = await request(null);
      const inboxId = await stored(providerRef);
      const applied = event(inboxId, providerRef, story);
      expect(await applyEvent(test.ledger, applied)).toEqual({ kind: "waiting" });
      expect(await applyEvent(test.ledger, { ...applied, waitPassed: true })).toEqual({ kind: "quarantined" });
      expect(await inboxRow(inboxId)).toMatchObject({ status: "QUARANTINED", outcome: "unmapped-reference" });
      await test.ledger.sql`
      UPDATE contract_signing SET operation_id = ${await planSend(test)}, status = 'STAGED' WHERE provider_ref = ${providerRef}`;
      expect(await inboxRow(inboxId)).toMatchObject({ status: "RECEIVED" });
      expect((await applyEvent(test.ledger, applied)).kind).toBe(effectOf("STAGED", story));
      const open = await test.ledger.sql`
      SELECT 1 FROM ticket WHERE kind = 'quarantine' AND subject_id = ${inboxId} AND resolved_at IS NULL`;
      expect(open).toHaveLength(0);
    },
  );
});

/** Leases the poll of a hint. */
async function pollOf(inboxId: string) {
  const [row] = await test.ledger.sql<{ id: string }[]>`
    SELECT work_item_id AS id FROM work_item WHERE kind = 'poll' AND subject_id = ${`hint/${inboxId}`}`;
  const item = await claimWork(test.ledger, "acme", row?.id ?? "", randomUUID(), 60_000);
  if (item === undefined) throw new Error("expected a poll");
  return item;
}

describe("what an event only hints at is asked for, and the answer goes through the same table", () => {
  it.each(pairs)("%s, hinted at, the record says %s", async (current, story) => {
    const effect = effectOf(current, story);
    const providerRef = await request(current);
    const inboxId = await stored(providerRef, true);
    // Whatever the hint itself says is not believed.
    const asked = await applyEvent(test.ledger, event(inboxId, providerRef, "COMPLETED", true));
    expect(asked).toEqual({ kind: "asking" });
    expect(await statusOf(providerRef)).toBe(current);
    expect(await inboxRow(inboxId)).toMatchObject({ status: "WAITING", outcome: "asks-the-provider" });
    const item = await pollOf(inboxId);
    const subject = await readPoll(test.ledger, item);
    const told = await applyPolled(test.ledger, item, subject, { kind: "found", status: story }, 60_000);
    expect(told.kind).toBe(effect);
    expect(await statusOf(providerRef)).toBe(effect === "applied" ? story : current);
    expect(await inboxRow(inboxId)).toMatchObject({ status: settledAs[effect], dueAt: null });
    expect(await applyPolled(test.ledger, item, subject, { kind: "found", status: story }, 60_000)).toEqual({
      kind: "gone",
    });
  });
});

describe("a request that is not over is polled", () => {
  it("those that nobody has spoken of for long enough, each once, and never one that is over", async () => {
    const open: Record<string, SigningStatus> = {};
    for (const status of signingStatuses) open[await request(status)] = status;
    await test.ledger.sql`UPDATE contract_signing SET asked_at = now()`;
    expect(await schedulePolls(test.ledger, 1_000, 60_000)).toBe(0);
    for (const ref of Object.keys(open)) {
      await test.ledger
        .sql`UPDATE contract_signing SET asked_at = now() - interval '2 minutes' WHERE provider_ref = ${ref}`;
    }
    expect(await schedulePolls(test.ledger, 1_000, 60_000)).toBe(openStatuses.length);
    expect(await schedulePolls(test.ledger, 1_000, 60_000)).toBe(0);
  });

  it.each(openStatuses.flatMap((current) => endStatuses.map((story) => [current, story] as const)))(
    "%s, the record says %s",
    async (current, story) => {
      const providerRef = await request(current);
      await test.ledger.sql`UPDATE contract_signing SET asked_at = to_timestamp(0) WHERE provider_ref = ${providerRef}`;
      await schedulePolls(test.ledger, 1_000, 60_000);
      const [row] = await test.ledger.sql<{ id: string }[]>`
        SELECT work_item_id AS id FROM work_item WHERE subject_id = ${`request/main/${providerRef}`}`;
      const item = await claimWork(test.ledger, "acme", row?.id ?? "", randomUUID(), 60_000);
      if (item === undefined) throw new Error("expected a poll");
      const subject = await readPoll(test.ledger, item);
      expect(subject?.key).toEqual({ ...key, providerRef });
      const told = await applyPolled(test.ledger, item, subject, { kind: "found", status: story }, 60_000);
      expect(told.kind).toBe(effectOf(current, story));
      expect(await statusOf(providerRef)).toBe(told.kind === "applied" ? story : current);
    },
  );
});

it("nothing leaves an end, and what was never sent contradicts everything that was", () => {
  for (const end of endStatuses) {
    for (const story of signingStatuses) expect(effectOf(end, story), `${end} ${story}`).not.toBe("applied");
    for (const other of endStatuses) expect(effectOf(end, other)).toBe(end === other ? "no-op" : "conflict");
  }
});

it("docs/webhooks.md has this table", async () => {
  const doc = await readFile(new URL("../../../docs/webhooks.md", import.meta.url), "utf8");
  expect(doc).toContain(signingTable());
});
