import { randomUUID } from "node:crypto";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  explain,
  findState,
  getHistory,
  getOperation,
  openPayload,
  placeLegalHold,
  plan,
  planInside,
  postgresDocumentStore,
  recordDelivery,
  releaseLegalHold,
  runRetention,
  transition,
} from "./index.js";
import { samplePayload, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

const yearsAgo = 400;

/** A UUIDv7 of long ago. */
const oldId = (): string => {
  const time = (Date.now() - yearsAgo * 86_400_000).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`;
};

async function planOld(sha256: string): Promise<string> {
  const operationId = oldId();
  const outcome = await plan(test.ledger, {
    ...{ tenantId: "acme", operationId, intentKey: `intent-${operationId}`, request: { to: "MARKER" } },
    approved: { action: "SEND", connectionId: "main", payload: samplePayload(sha256) },
    bodyDigest: Buffer.alloc(32, 1),
  });
  expect(outcome.kind).toBe("created");
  return operationId;
}

async function end(operationId: string): Promise<void> {
  const found = await findState(test.ledger.sql, "acme", operationId);
  const outcome = await transition(test.ledger, "supersedePlanned", {
    ...{ tenantId: "acme", operationId, owner: randomUUID(), actor: "test", reason: "test" },
    ...{ leaseMs: 60_000, dueMs: 0, evidenceNo: found?.evidenceNo ?? 0 },
  });
  expect(outcome.applied).toBe(true);
}

/** Moves the clock, not the guards: only the moments of rows are set back. */
async function age(): Promise<void> {
  await test.ledger.sql.begin(async (sql) => {
    await sql`SET LOCAL session_replication_role = replica`;
    await sql`UPDATE signing_operation SET finished_at = finished_at - interval '400 days' WHERE finished_at > now() - interval '1 day'`;
    await sql`UPDATE document SET created_at = created_at - interval '400 days' WHERE created_at > now() - interval '1 day'`;
  });
}

const upload = () => postgresDocumentStore(test.ledger).put("acme", Buffer.from(`%PDF-1.4 ${randomUUID()}`));
const options = { payloadDays: 365, documentDays: 365, bodyDays: 30, tenantId: "acme" };
const hasBytes = async (sha256: string): Promise<boolean> => {
  const rows = await test.ledger
    .sql`SELECT 1 FROM document WHERE sha256 = decode(${sha256}, 'hex') AND bytes IS NOT NULL`;
  return rows.count > 0;
};
const hasPayload = async (id: string): Promise<boolean> => (await openPayload(test.ledger, "acme", id)) !== undefined;

describe("retention", () => {
  it("erases what is final and old with its signers' tokens, keeps the rest, and says both", async () => {
    const [gone, needed, young] = [await upload(), await upload(), await upload()];
    const [over, open] = [await planOld(gone), await planOld(needed)];
    await end(over);
    await age();
    await test.ledger.sql`UPDATE document SET created_at = now() WHERE sha256 = decode(${young}, 'hex')`;
    const dry = await runRetention(test.ledger, { ...options, dryRun: true });
    expect(await hasPayload(over)).toBe(true);
    const [ran] = await runRetention(test.ledger, options);
    // The sample document of the test ledger is old by now, too.
    expect(ran).toEqual({
      tenantId: "acme",
      erased: { payloads: 1, subjects: 1, documents: 2, bodies: 0 },
      stayed: { "payload-not-final": 1, "document-still-needed": 1 },
    });
    expect(dry).toMatchObject([{ erased: { payloads: 1, documents: 2 }, stayed: ran?.stayed }]);
    expect([await hasPayload(over), await hasPayload(open)]).toEqual([false, true]);
    expect([await hasBytes(gone), await hasBytes(needed), await hasBytes(young)]).toEqual([false, true, true]);
    const subjects = await test.ledger.sql`SELECT kind FROM operation_subject WHERE operation_id = ${over}`;
    expect(subjects.map((row) => row.kind)).toEqual(["document"]);
    const [record] = await test.ledger.sql`SELECT kind, counts FROM erasure`;
    expect(record).toMatchObject({ kind: "retention", counts: { payloads: 1, "stayed-payload-not-final": 1 } });
  });

  it("a second run erases nothing and leaves no record; explain still answers", async () => {
    const [again] = await runRetention(test.ledger, options);
    expect(again?.erased).toEqual({ payloads: 0, subjects: 0, documents: 0, bodies: 0 });
    expect((await test.ledger.sql`SELECT 1 FROM erasure`).count).toBe(1);
    const [row] = await test.ledger.sql<{ id: string }[]>`
      SELECT operation_id AS id FROM approved_payload WHERE erased_at IS NOT NULL`;
    const operation = await getOperation(test.ledger, "acme", row?.id ?? "");
    if (operation === undefined) throw new Error("the operation is gone");
    const history = await getHistory(test.ledger, "acme", operation.operationId);
    expect(explain(operation, history).answer).not.toBe("");
  });

  it("an erased document is refused to a new plan until it is uploaded again, and its days begin anew", async () => {
    const store = postgresDocumentStore(test.ledger);
    const body = Buffer.from("%PDF-1.4 comes back");
    const sha256 = await store.put("acme", body);
    await age();
    await runRetention(test.ledger, options);
    await expect(planOld(sha256)).rejects.toMatchObject({ code: "documents-unknown" });
    await store.put("acme", body);
    expect((await runRetention(test.ledger, options))[0]?.erased.documents).toBe(0);
    await planOld(sha256);
  });

  it("keeps what a legal hold covers: payload, documents, bodies; and erases it after the release", async () => {
    const sha256 = await upload();
    const operationId = await planOld(sha256);
    await end(operationId);
    await age();
    const recorded = await recordDelivery(test.ledger, {
      ...{ tenantId: "acme", connectionId: "main", endpointId: "we_1", providerEventId: randomUUID() },
      ...{ operationId, body: Buffer.from("{}") },
    });
    const inboxId = recorded.kind === "stored" ? recorded.inboxId : "";
    const old = oldId();
    await test.ledger.sql.begin(async (sql) => {
      await sql`SET LOCAL session_replication_role = replica`;
      await sql`UPDATE webhook_body SET inbox_id = ${old}, received_at = now() - interval '400 days' WHERE inbox_id = ${inboxId}`;
      await sql`
        UPDATE webhook_inbox SET inbox_id = ${old}, received_at = now() - interval '400 days', status = 'APPLIED', due_at = NULL
        WHERE inbox_id = ${inboxId}`;
    });
    const by = { by: "u-1", reason: "litigation" };
    const legalHoldId = await placeLegalHold(test.ledger, { tenantId: "acme", operationId, ...by });
    const [held] = await runRetention(test.ledger, options);
    expect(held?.erased).toEqual({ payloads: 0, subjects: 0, documents: 0, bodies: 0 });
    expect(held?.stayed).toMatchObject({ "payload-legal-hold": 1, "document-legal-hold": 1, "body-legal-hold": 1 });
    await releaseLegalHold(test.ledger, { tenantId: "acme", legalHoldId, ...by });
    const [released] = await runRetention(test.ledger, options);
    expect(released?.erased).toEqual({ payloads: 1, subjects: 1, documents: 1, bodies: 1 });
  });

  it("two runs at once erase each thing once, in batches of any size", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) {
      const id = await planOld(await upload());
      await end(id);
      ids.push(id);
    }
    await age();
    const runs = await Promise.all([1, 2].map(() => runRetention(test.ledger, { ...options, limit: 2 })));
    const sum = (what: "payloads" | "documents") =>
      runs.reduce((total, [each]) => total + (each?.erased[what] ?? 0), 0);
    expect([sum("payloads"), sum("documents")]).toEqual([7, 7]);
    for (const id of ids) expect(await hasPayload(id)).toBe(false);
  });

  it("a run that fails between two batches keeps and records what it did, and the next one does the rest", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const id = await planOld(await upload());
      await end(id);
      ids.push(id);
    }
    await age();
    const last = ids.toSorted().at(-1) ?? "";
    await test.ledger.sql.unsafe(`
      CREATE FUNCTION test_fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gone'; END $$;
      CREATE TRIGGER test_fails BEFORE UPDATE ON approved_payload FOR EACH ROW
        WHEN (OLD.operation_id = '${last}') EXECUTE FUNCTION test_fails()`);
    const records = async () =>
      (await test.ledger.sql`SELECT counts FROM erasure ORDER BY at`).map((row) => row.counts);
    const before = (await records()).length;
    await expect(runRetention(test.ledger, { ...options, limit: 1 })).rejects.toThrow("gone");
    expect((await records()).slice(before)).toMatchObject([{ payloads: 2, documents: 0 }]);
    await test.ledger.sql.unsafe("DROP TRIGGER test_fails ON approved_payload; DROP FUNCTION test_fails()");
    expect((await runRetention(test.ledger, options))[0]?.erased).toMatchObject({ payloads: 1, documents: 3 });
    for (const id of ids) expect(await hasPayload(id)).toBe(false);
  });

  it("a document that a plan under way has seen is not erased", async () => {
    const sha256 = await upload();
    await age();
    const operationId = oldId();
    await test.ledger.sql.begin(async (sql) => {
      await planInside(test.ledger, sql, {
        ...{ tenantId: "acme", operationId, intentKey: `intent-${operationId}`, request: {} },
        approved: { action: "SEND", connectionId: "main", payload: samplePayload(sha256) },
        bodyDigest: Buffer.alloc(32, 1),
      });
      const [ran] = await runRetention(test.ledger, options);
      expect(ran?.stayed).toMatchObject({ "document-busy": 1 });
    });
    expect(await hasBytes(sha256)).toBe(true);
    expect((await runRetention(test.ledger, options))[0]?.erased.documents).toBe(0);
  });
});
