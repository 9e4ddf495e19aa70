import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  findState,
  placeLegalHold,
  postgresDocumentStore,
  recordDelivery,
  releaseLegalHold,
  transition,
} from "./index.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
/** What an operator has: psql. */
let plain: postgres.Sql;
beforeAll(async () => {
  test = await startTestLedger();
  plain = postgres(test.url, { max: 2, onnotice: () => undefined });
});
afterAll(async () => {
  await plain.end();
  await test.stop();
});

async function ended(): Promise<string> {
  const operationId = await planSend(test);
  const found = await findState(test.ledger.sql, "acme", operationId);
  const outcome = await transition(test.ledger, "supersedePlanned", {
    ...{ tenantId: "acme", operationId, owner: randomUUID(), actor: "test", reason: "test" },
    ...{ leaseMs: 60_000, dueMs: 0, evidenceNo: found?.evidenceNo ?? 0 },
  });
  expect(outcome.applied).toBe(true);
  return operationId;
}

const erase = (id: string) =>
  plain`UPDATE approved_payload SET payload = NULL, request = NULL, erased_at = now() WHERE operation_id = ${id}`;
const held = { code: "CS005" };
const frozen = { code: "CS002" };
const kept = { code: "CS003" };
const by = { by: "u-1", reason: "litigation" };

describe("payloads and their signers' tokens", () => {
  it("are not erased under a legal hold of the operation or the tenant, and are after its release", async () => {
    for (const scope of [true, false]) {
      const id = await ended();
      const hold = await placeLegalHold(test.ledger, {
        tenantId: "acme",
        ...by,
        ...(scope ? { operationId: id } : {}),
      });
      await expect(erase(id)).rejects.toMatchObject(held);
      await releaseLegalHold(test.ledger, { tenantId: "acme", legalHoldId: hold, ...by });
      expect((await erase(id)).count).toBe(1);
      await expect(
        plain`UPDATE approved_payload SET erased_at = now() + interval '1 day' WHERE operation_id = ${id}`,
      ).rejects.toMatchObject(frozen);
    }
  });

  it("go in this order only; a document's token stays", async () => {
    const id = await ended();
    const forget = (kind: string) => plain`DELETE FROM operation_subject WHERE operation_id = ${id} AND kind = ${kind}`;
    await expect(forget("signer")).rejects.toMatchObject(kept);
    await erase(id);
    expect((await forget("signer")).count).toBe(1);
    await expect(forget("document")).rejects.toMatchObject(kept);
  });

  it("an erasure that waits for a hold being placed is refused by it", async () => {
    const id = await ended();
    const placing = await plain.reserve();
    await placing`BEGIN`;
    await placing`
      INSERT INTO legal_hold (tenant_id, legal_hold_id, operation_id, placed_by, reason) VALUES ('acme', gen_random_uuid(), ${id}, 'u-1', 'x')`;
    const erasing = erase(id).then(
      () => "erased",
      (error: postgres.PostgresError) => error.code,
    );
    await expect
      .poll(async () => (await test.ledger.sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`).count)
      .toBe(1);
    await placing`COMMIT`;
    placing.release();
    expect(await erasing).toBe("CS005");
  });
});

describe("documents", () => {
  it("are erased with their moment, brought back by an upload, and changed in no other way", async () => {
    const store = postgresDocumentStore(test.ledger);
    const body = Buffer.from("%PDF-1.4 another");
    const sha256 = await store.put("acme", body);
    const where = plain`WHERE tenant_id = 'acme' AND sha256 = decode(${sha256}, 'hex')`;
    await expect(plain`UPDATE document SET bytes = 'x' ${where}`).rejects.toMatchObject(frozen);
    await expect(plain`UPDATE document SET sha256 = sha256('x') ${where}`).rejects.toMatchObject(frozen);
    await expect(plain`UPDATE document SET bytes = NULL ${where}`).rejects.toMatchObject({
      constraint_name: "document_erased_whole",
    });
    await expect(plain`DELETE FROM document ${where}`).rejects.toMatchObject(kept);
    expect((await plain`UPDATE document SET bytes = NULL, erased_at = now() ${where}`).count).toBe(1);
    await expect(store.get("acme", sha256)).rejects.toMatchObject({ code: "not-found" });
    expect(await store.put("acme", body)).toBe(sha256);
    expect(await store.get("acme", sha256)).toEqual(body);
    const hold = await placeLegalHold(test.ledger, { tenantId: "acme", ...by });
    await expect(plain`UPDATE document SET bytes = NULL, erased_at = now() ${where}`).rejects.toMatchObject(held);
    await releaseLegalHold(test.ledger, { tenantId: "acme", legalHoldId: hold, ...by });
  });
});

it("the body of a settled event stays under a legal hold of the operation that it names", async () => {
  const operationId = await ended();
  const recorded = await recordDelivery(test.ledger, {
    ...{ tenantId: "acme", connectionId: "main", endpointId: "we_1", providerEventId: "e-1" },
    ...{ operationId, body: Buffer.from("{}") },
  });
  const inboxId = recorded.kind === "stored" ? recorded.inboxId : "";
  await plain`UPDATE webhook_inbox SET status = 'APPLIED', due_at = NULL WHERE inbox_id = ${inboxId}`;
  const legalHoldId = await placeLegalHold(test.ledger, { tenantId: "acme", operationId, ...by });
  const remove = () => plain`DELETE FROM webhook_body WHERE inbox_id = ${inboxId}`;
  await expect(remove()).rejects.toMatchObject(held);
  await releaseLegalHold(test.ledger, { tenantId: "acme", legalHoldId, ...by });
  expect((await remove()).count).toBe(1);
});

it("records of actions, erasures and legal holds are kept; an action gets its result once", async () => {
  const legalHoldId = await placeLegalHold(test.ledger, { tenantId: "bravo", ...by });
  await releaseLegalHold(test.ledger, { tenantId: "bravo", legalHoldId, ...by });
  await expect(releaseLegalHold(test.ledger, { tenantId: "bravo", legalHoldId, ...by })).rejects.toMatchObject({
    code: "legal-hold-released",
  });
  await plain`
    INSERT INTO console_action (action_id, operator_id, operator, role, action)
    VALUES (gen_random_uuid(), gen_random_uuid(), 'desk', 'operator', 'POST /x')`;
  await plain`
    INSERT INTO erasure (tenant_id, erasure_id, kind, who, why, counts) VALUES ('bravo', gen_random_uuid(), 'person', 'u-1', 'asked', '{}')`;
  expect((await plain`UPDATE console_action SET status = 200, finished_at = now()`).count).toBe(1);
  for (const [statement, code] of [
    ["UPDATE console_action SET status = 500", "CS002"],
    ["UPDATE console_action SET operator = 'x'", "CS002"],
    ["DELETE FROM console_action", "CS003"],
    ["TRUNCATE console_action", "CS003"],
    ["UPDATE erasure SET counts = '{\"payloads\": 1}'", "CS003"],
    ["DELETE FROM erasure", "CS003"],
    ["TRUNCATE erasure", "CS003"],
    ["DELETE FROM legal_hold WHERE tenant_id = 'bravo'", "CS003"],
    [
      "UPDATE legal_hold SET released_at = NULL, released_by = NULL, release_reason = NULL WHERE tenant_id = 'bravo'",
      "CS002",
    ],
    ["TRUNCATE legal_hold", "CS003"],
  ] as const) {
    await expect(plain.unsafe(statement), statement).rejects.toMatchObject({ code });
  }
});
