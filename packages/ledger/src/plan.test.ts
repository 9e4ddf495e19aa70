import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getHistory, getOperation, type Plan, type PlanOutcome, plan } from "./index.js";
import { planSend, planVoid, samplePayload, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

function request(change: Partial<Plan> & { intentKey: string }): Plan {
  return {
    tenantId: "acme",
    operationId: newId(),
    approved: { action: "SEND", connectionId: "main", payload: samplePayload(test.documentSha256) },
    request: { path: "send" },
    bodyDigest: Buffer.alloc(32, 1),
    ...change,
  };
}

const changed = (change: Parameters<typeof samplePayload>[1]): Plan["approved"] => ({
  action: "SEND",
  connectionId: "main",
  payload: samplePayload(test.documentSha256, change),
});

describe("the same intent", () => {
  it("with the same hash is the same operation, and the second one is noted where another asks", async () => {
    const first = await plan(test.ledger, request({ intentKey: "same", requestedBy: "user-1" }));
    const second = await plan(test.ledger, request({ intentKey: "same", requestedBy: "user-2" }));
    if (first.kind !== "created" || second.kind !== "existing") throw new Error("unexpected outcome");
    expect(second.operation.operationId).toBe(first.operation.operationId);
    expect(second).toMatchObject({ byAnother: true, firstRequestedBy: "user-1" });
    const history = await getHistory(test.ledger, "acme", first.operation.operationId);
    expect(history.map((line) => line.kind)).toEqual(["planned", "duplicate_requested"]);
  });

  it("with a changed payload is a conflict that names the parts and keeps the first", async () => {
    const first = await plan(test.ledger, request({ intentKey: "changed" }));
    const other = changed({
      signers: [{ email: "other@example.com", role: "customer", order: 1 }],
      expiresInDays: 7,
    });
    const outcome = await plan(test.ledger, request({ intentKey: "changed", approved: other }));
    if (first.kind !== "created") throw new Error("unexpected outcome");
    expect(outcome).toEqual({
      kind: "conflict",
      operationId: first.operation.operationId,
      differs: ["expiresInDays", "signers"],
    });
  });

  it("asked for fifty times at once, once changed: one row, the same id for all, one conflict", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        plan(
          test.ledger,
          request({ intentKey: "race", ...(index === 25 ? { approved: changed({ expiresInDays: 3 }) } : {}) }),
        ),
      ),
    );
    const by = (kind: PlanOutcome["kind"]) => outcomes.filter((outcome) => outcome.kind === kind).length;
    const [row] = await test.ledger.sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM signing_operation WHERE intent_key = 'race'`;
    expect(row?.count).toBe(1);
    expect(by("created")).toBe(1);
    // Whichever hash came first won; all others of that hash are the same operation.
    expect([1, 49]).toContain(by("conflict"));
    expect(by("created") + by("existing") + by("conflict")).toBe(50);
  });

  it("in another tenant is another operation", async () => {
    const mine = await plan(test.ledger, request({ intentKey: "shared" }));
    const theirs = await plan(test.ledger, request({ intentKey: "shared", tenantId: "bravo" }));
    expect([mine.kind, theirs.kind]).toEqual(["created", "created"]);
    if (theirs.kind !== "created") throw new Error("unexpected outcome");
    expect(await getOperation(test.ledger, "acme", theirs.operation.operationId)).toBeUndefined();
  });
});

it("a document that was never uploaded is refused and plans nothing", async () => {
  const approved = changed({ documents: [{ sha256: "ab".repeat(32) }] });
  await expect(plan(test.ledger, request({ intentKey: "no-document", approved }))).rejects.toMatchObject({
    code: "documents-unknown",
  });
  const rows = await test.ledger.sql`SELECT 1 FROM signing_operation WHERE intent_key = 'no-document'`;
  expect(rows).toHaveLength(0);
});

it("what is stored is encrypted: no address stands in any table", async () => {
  const marker = "marker-7f3a@example.com";
  await plan(
    test.ledger,
    request({ intentKey: "secret", approved: changed({ signers: [{ email: marker, role: "r", order: 1 }] }) }),
  );
  const rows = await test.ledger.sql<{ found: number }[]>`
    SELECT count(*)::int AS found FROM approved_payload
    WHERE position(${Buffer.from("marker-7f3a")} IN payload) > 0 OR position(${Buffer.from("marker-7f3a")} IN request) > 0`;
  expect(rows[0]?.found).toBe(0);
});

describe("relations", () => {
  async function begin(id: string): Promise<void> {
    await test.ledger.sql`
      UPDATE signing_operation SET state = 'IN_FLIGHT', event_no = event_no + 1, attempt_no = attempt_no + 1, first_attempt_at = now(),
        quiet_from = now(), lease_owner = gen_random_uuid(), lease_expires_at = now(), due_at = now() WHERE operation_id = ${id}`;
  }
  async function end(id: string, as: "CONFIRMED" | "TERMINAL_FAILED"): Promise<void> {
    await test.ledger.sql`
      UPDATE signing_operation SET state = ${as}, reason = 'test', event_no = event_no + 1, lease_owner = NULL, lease_expires_at = NULL, due_at = NULL,
        finished_at = now(), provider_ref = ${as === "CONFIRMED" ? `sr_${id}` : null} WHERE operation_id = ${id}`;
  }
  async function settle(id: string, as: "CONFIRMED" | "TERMINAL_FAILED"): Promise<void> {
    await begin(id);
    await end(id, as);
  }
  const view = (id: string) => getOperation(test.ledger, "acme", id);
  const voidOf = async (target: string): Promise<string> => {
    const [row] = await test.ledger.sql<{ operation_id: string }[]>`
      SELECT operation_id FROM signing_operation WHERE target_operation_id = ${target} AND action = 'VOID' ORDER BY created_at DESC LIMIT 1`;
    return row?.operation_id ?? "";
  };

  it("a VOID waits for its target and gets its reference when that is confirmed", async () => {
    const target = await planSend(test);
    await begin(target);
    const waiting = await planVoid(test, target);
    expect(await view(waiting)).toMatchObject({ state: "PLANNED", openDependencies: 1, dueAt: null });
    await end(target, "CONFIRMED");
    expect(await view(waiting)).toMatchObject({ state: "PLANNED", openDependencies: 0 });
    expect((await view(waiting))?.dueAt).not.toBeNull();
    const [row] = await test.ledger.sql`SELECT target_ref FROM signing_operation WHERE operation_id = ${waiting}`;
    expect(row?.target_ref).toBe(`sr_${target}`);
  });

  it("nothing ever waits for a final operation", async () => {
    const target = await planSend(test);
    await settle(target, "CONFIRMED");
    expect(await view(await planVoid(test, target))).toMatchObject({ state: "PLANNED", openDependencies: 0 });
    const failed = await planSend(test);
    await settle(failed, "TERMINAL_FAILED");
    expect(await view(await planVoid(test, failed))).toMatchObject({
      state: "SUPERSEDED",
      reason: "target-never-existed",
    });
  });

  it("a chain of three void-first amendments: the last one waits for every unfinished VOID of the chain", async () => {
    const first = await planSend(test);
    await settle(first, "CONFIRMED");
    const second = await planSend(test, { supersedes: first });
    const third = await planSend(test, { supersedes: second });
    expect(await view(second)).toMatchObject({ state: "SUPERSEDED", reason: "amended" });
    expect(await view(third)).toMatchObject({ state: "PLANNED", openDependencies: 1 });
    await settle(await voidOf(first), "CONFIRMED");
    expect(await view(third)).toMatchObject({ openDependencies: 0 });
  });

  it("send-first then void-first: the VOID stops waiting for the replaced SEND, and the last one waits for it", async () => {
    const first = await planSend(test);
    await settle(first, "CONFIRMED");
    const second = await planSend(test, { supersedes: first, mode: "send-first" });
    const waiting = await voidOf(first);
    expect(await view(waiting)).toMatchObject({ openDependencies: 1 });
    const third = await planSend(test, { supersedes: second, mode: "void-first" });
    expect(await view(waiting)).toMatchObject({ state: "PLANNED", openDependencies: 0 });
    expect(await view(third)).toMatchObject({ openDependencies: 1 });
  });

  it("send-first then send-first: the VOID follows the last successor", async () => {
    const first = await planSend(test);
    await settle(first, "CONFIRMED");
    const second = await planSend(test, { supersedes: first, mode: "send-first" });
    const waiting = await voidOf(first);
    const third = await planSend(test, { supersedes: second, mode: "send-first" });
    expect(await view(waiting)).toMatchObject({ state: "PLANNED", openDependencies: 1 });
    await settle(third, "CONFIRMED");
    expect(await view(waiting)).toMatchObject({ state: "PLANNED", openDependencies: 0 });
  });

  it("send-first whose replacement fails: the VOID is retired with an owned ticket, the old one stands", async () => {
    const first = await planSend(test);
    await settle(first, "CONFIRMED");
    const second = await planSend(test, { supersedes: first, mode: "send-first" });
    const waiting = await voidOf(first);
    await settle(second, "TERMINAL_FAILED");
    expect(await view(waiting)).toMatchObject({ state: "SUPERSEDED", reason: "successor-failed" });
    const tickets = await test.ledger
      .sql`SELECT owner FROM ticket WHERE kind = 'void-retired' AND subject_id = ${waiting}`;
    expect(tickets).toHaveLength(1);
  });

  it("self, unknown, unsuitable and foreign targets are named refusals that change nothing", async () => {
    const operationId = newId();
    const sample = request({ intentKey: "refused", operationId });
    const voidOfTarget = (target: string): Plan => ({
      ...sample,
      approved: {
        action: "VOID",
        connectionId: "main",
        payload: { schemaVersion: 1 },
        target: { operationId: target },
      },
    });
    await expect(plan(test.ledger, voidOfTarget(operationId))).rejects.toMatchObject({ code: "target-self" });
    await expect(plan(test.ledger, voidOfTarget(newId()))).rejects.toMatchObject({ code: "not-found" });
    const target = await planSend(test, { tenantId: "bravo" });
    await expect(plan(test.ledger, voidOfTarget(target))).rejects.toMatchObject({ code: "not-found" });
    const send = await planSend(test);
    await settle(send, "CONFIRMED");
    const other = await planVoid(test, send);
    await expect(plan(test.ledger, voidOfTarget(other))).rejects.toMatchObject({ code: "target-unsuitable" });
    expect(await test.ledger.sql`SELECT 1 FROM signing_operation WHERE intent_key = 'refused'`).toHaveLength(0);
  });

  it("the end of a target and the planning of a VOID against it, at once, a hundred times: nothing waits for ever", async () => {
    for (let round = 0; round < 100; round += 1) {
      const target = await planSend(test);
      await begin(target);
      const [, waiting] = await Promise.all([end(target, "CONFIRMED"), planVoid(test, target)]);
      const operation = await view(waiting);
      expect(operation).toMatchObject({ state: "PLANNED", openDependencies: 0 });
    }
  });
});
