import { randomUUID } from "node:crypto";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  conflict,
  decideDuplicate,
  getHistory,
  getOperation,
  knownReferences,
  listTickets,
  markUnknown,
  type Plan,
  type Review,
  recordEvidence,
  review,
} from "./index.js";
import { planSend, planVoid, samplePayload, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

const by = { tenantId: "acme", actor: "test", reason: "test" };
const voidRequest = () => ({ request: { path: "void" }, bodyDigest: Buffer.alloc(32, 2) });

/** Takes an operation through one attempt in doubt to NEEDS_REVIEW, with these references seen. */
async function inReview(
  operationId: string,
  references: readonly string[],
  reason = "more-than-one-match",
): Promise<void> {
  const owner = randomUUID();
  await claimForSubmit(test.ledger, [{ ...by, operationId, owner, leaseMs: 60_000 }]);
  await markUnknown(test.ledger, { ...by, operationId, owner, observation: { kind: "ambiguous" }, doubts: true });
  for (const providerRef of references) {
    await recordEvidence(test.ledger.sql, { ...by, operationId, providerRef, source: "lookup" });
  }
  const claim = await claimForReconcile(test.ledger, { ...by, operationId, owner, leaseMs: 60_000 });
  if (!claim.applied) throw new Error("not claimed");
  const end = await conflict(test.ledger, { ...by, operationId, owner, evidenceNo: claim.row.evidence_no, reason });
  if (!end.applied) throw new Error("not in review");
}

async function decide(operationId: string, decision: Review["decision"], more: Partial<Review> = {}) {
  const operation = await getOperation(test.ledger, "acme", operationId);
  return await review(test.ledger, {
    tenantId: "acme",
    operationId,
    evidenceNo: operation?.evidenceNo ?? -1,
    who: "reviewer-1",
    why: "the customer confirmed the first one",
    basis: "person",
    decision,
    quiescenceMs: 0,
    voidRequest,
    ...more,
  });
}

const voidsOf = async (target: string) =>
  await test.ledger.sql<
    { operation_id: string; target_ref: string | null; state: string; intent_key: string; open_dependencies: number }[]
  >`
    SELECT operation_id, target_ref, state, intent_key, open_dependencies FROM signing_operation
    WHERE target_operation_id = ${target} AND action = 'VOID' ORDER BY operation_id`;

const state = async (operationId: string) => (await getOperation(test.ledger, "acme", operationId))?.state;

/** Everything that a refused decision must leave as it was. */
async function snapshot(operationId: string) {
  return {
    operation: await getOperation(test.ledger, "acme", operationId),
    history: await getHistory(test.ledger, "acme", operationId),
    tickets: await listTickets(test.ledger, "acme"),
    voids: await voidsOf(operationId),
    references: await knownReferences(test.ledger.sql, "acme", operationId),
  };
}

describe("keeping one reference", () => {
  it("plans a ledgered VOID for every other one, never for a completed one; who and why stand in the history", async () => {
    const id = await planSend(test);
    await inReview(id, ["sr_a", "sr_b", "sr_c"]);
    await test.ledger.sql`
      INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status) VALUES ('acme', 'main', 'sr_c', ${id}, 'COMPLETED')`;
    const result = await decide(id, { kind: "keep", providerRef: "sr_a" });
    expect(result.state).toBe("CONFIRMED");
    expect((await voidsOf(id)).map((row) => [row.target_ref, row.state, row.intent_key])).toEqual([
      ["sr_b", "PLANNED", `cs:void:${id}:1`],
    ]);
    expect(await getOperation(test.ledger, "acme", id)).toMatchObject({
      state: "CONFIRMED",
      providerRef: "sr_a",
      basis: "person",
    });
    expect(
      (await knownReferences(test.ledger.sql, "acme", id)).map(({ providerRef, role }) => [providerRef, role]),
    ).toEqual([
      ["sr_a", "kept"],
      ["sr_b", "extra"],
      ["sr_c", "extra"],
    ]);
    const line = (await getHistory(test.ledger, "acme", id)).find((each) => each.reason === "kept-by-review");
    expect(line).toMatchObject({ actor: "person:reviewer-1", evidence: { who: "reviewer-1", voidsPlanned: 1 } });
    expect((await listTickets(test.ledger, "acme")).filter((ticket) => ticket.subjectId === id)).toEqual([]);
  });

  it("releases the VOID that waited for it with the kept reference", async () => {
    const id = await planSend(test);
    const waiting = await planVoid(test, id).catch(() => undefined);
    expect(waiting).toBeDefined();
    // A VOID of a PLANNED SEND ends both: take one that is under way.
    const sent = await planSend(test);
    await inReview(sent, ["sr_d", "sr_e"]);
    const voidId = await planVoid(test, sent);
    await decide(sent, { kind: "keep", providerRef: "sr_d" });
    const voids = await voidsOf(sent);
    expect(voids.find((row) => row.operation_id === voidId)).toMatchObject({
      target_ref: "sr_d",
      open_dependencies: 0,
    });
    expect(voids.map((row) => row.target_ref).sort()).toEqual(["sr_d", "sr_e"]);
  });

  it("may keep a reference that was found by hand, unless it is another operation's", async () => {
    const id = await planSend(test);
    await inReview(id, [], "unprovable");
    await expect(decide(id, { kind: "keep", providerRef: "sr_hand" })).rejects.toMatchObject({
      code: "reference-unknown",
    });
    const other = await planSend(test);
    await inReview(other, ["sr_of_other"]);
    const foundByHand = { signingStatus: "SENT" };
    await expect(decide(id, { kind: "keep", providerRef: "sr_of_other", foundByHand })).rejects.toMatchObject({
      code: "reference-of-another-operation",
    });
    await decide(id, { kind: "keep", providerRef: "sr_hand", foundByHand });
    expect(await getOperation(test.ledger, "acme", id)).toMatchObject({ state: "CONFIRMED", providerRef: "sr_hand" });
  });
});

describe("abandoning", () => {
  it("plans a VOID for every reference; the amendment that waited goes on waiting for each", async () => {
    const id = await planSend(test);
    await inReview(id, ["sr_f", "sr_g"]);
    const amendment = await planSend(test, { supersedes: id });
    await decide(id, { kind: "abandon" });
    expect(await state(id)).toBe("SUPERSEDED");
    const voids = await voidsOf(id);
    expect(voids.map((row) => [row.target_ref, row.open_dependencies])).toEqual([
      ["sr_f", 0],
      ["sr_g", 0],
    ]);
    const [waiter] = await test.ledger.sql<{ open_dependencies: number }[]>`
      SELECT open_dependencies FROM signing_operation WHERE operation_id = ${amendment}`;
    expect(waiter?.open_dependencies).toBe(2);
    // One VOID's end is not enough, the second one's is.
    for (const [index, { operation_id: voidId }] of voids.entries()) {
      const owner = randomUUID();
      const [claim] = await claimForSubmit(test.ledger, [{ ...by, operationId: voidId, owner, leaseMs: 60_000 }]);
      if (claim?.applied !== true) throw new Error("not claimed");
      await confirm(test.ledger, [
        {
          ...by,
          operationId: voidId,
          owner,
          evidenceNo: claim.row.evidence_no,
          providerRef: claim.row.target_ref ?? "",
          observation: {},
          basis: "proof",
          cause: "ours",
        },
      ]);
      const [left] = await test.ledger.sql<{ open_dependencies: number; due: boolean }[]>`
        SELECT open_dependencies, due_at IS NOT NULL AS due FROM signing_operation WHERE operation_id = ${amendment}`;
      expect(left).toEqual({ open_dependencies: 1 - index, due: index === 1 });
    }
  });

  it("what was unprovable: nothing to void, dependants end, and the audit looks go on", async () => {
    const id = await planSend(test);
    await inReview(id, [], "unprovable");
    const voidId = await planVoid(test, id);
    await decide(id, { kind: "abandon" });
    expect(await state(voidId)).toBe("SUPERSEDED");
    const audits = await test.ledger.sql`SELECT 1 FROM work_item WHERE kind = 'audit' AND subject_id = ${id}`;
    expect(audits).toHaveLength(2);
  });

  it("plans the replacement in the same transaction, or nothing at all", async () => {
    const id = await planSend(test);
    await inReview(id, ["sr_h"]);
    const operationId = newId();
    const replacement = (intentKey: string): Plan => ({
      tenantId: "acme",
      operationId,
      intentKey,
      approved: {
        action: "SEND",
        connectionId: "main",
        payload: samplePayload(test.documentSha256, { expiresInDays: 9 }),
      },
      request: { path: "send" },
      bodyDigest: Buffer.alloc(32, 1),
      supersedes: { operationId: id, mode: "void-first", voidRequest },
    });
    await planSend(test, { intentKey: "taken" });
    const before = await snapshot(id);
    await expect(decide(id, { kind: "abandon", replacement: replacement("taken") })).rejects.toMatchObject({
      code: "intent-exists",
    });
    expect(await snapshot(id)).toEqual(before);
    const result = await decide(id, { kind: "abandon", replacement: replacement("fresh") });
    expect(result.replacement?.operationId).toBe(operationId);
    expect(await state(id)).toBe("SUPERSEDED");
    expect(await getOperation(test.ledger, "acme", operationId)).toMatchObject({
      state: "PLANNED",
      openDependencies: 1,
    });
    expect((await voidsOf(id)).map((row) => [row.target_ref, row.open_dependencies])).toEqual([["sr_h", 0]]);
  });
});

describe("a VOID in review that something waits for", () => {
  async function refusedVoid(reason = "void-refused-but-target-live") {
    const id = await planSend(test);
    const owner = randomUUID();
    const [claim] = await claimForSubmit(test.ledger, [{ ...by, operationId: id, owner, leaseMs: 60_000 }]);
    if (claim?.applied !== true) throw new Error("not claimed");
    const providerRef = `sr_${id}`;
    await confirm(test.ledger, [
      { ...by, operationId: id, owner, evidenceNo: 0, providerRef, observation: {}, basis: "proof" },
    ]);
    const amendment = await planSend(test, { supersedes: id });
    const [voidRow] = await voidsOf(id);
    const voidId = voidRow?.operation_id ?? "";
    await inReview(voidId, [], reason);
    return { voidId, amendment, providerRef };
  }

  it("is not given up without saying what becomes of it", async () => {
    const { voidId, amendment } = await refusedVoid();
    const before = await snapshot(voidId);
    await expect(decide(voidId, { kind: "abandon" })).rejects.toMatchObject({
      code: "dependants-undecided",
      detail: { waiting: [amendment] },
    });
    expect(await snapshot(voidId)).toEqual(before);
  });

  it("release: it goes ahead; retire: it ends, too; retry: it waits for a new VOID", async () => {
    const release = await refusedVoid();
    await decide(release.voidId, { kind: "abandon", dependants: "release" });
    expect(await getOperation(test.ledger, "acme", release.amendment)).toMatchObject({
      state: "PLANNED",
      openDependencies: 0,
    });
    const retire = await refusedVoid();
    await decide(retire.voidId, { kind: "abandon", dependants: "retire" });
    expect(await state(retire.amendment)).toBe("SUPERSEDED");
    const retry = await refusedVoid();
    const result = await decide(retry.voidId, { kind: "abandon", dependants: "retry" });
    expect(await getOperation(test.ledger, "acme", retry.amendment)).toMatchObject({
      state: "PLANNED",
      openDependencies: 1,
    });
    const [again] = await test.ledger.sql<{ target_ref: string; state: string }[]>`
      SELECT target_ref, state FROM signing_operation WHERE operation_id = ${result.planned[0]?.operationId ?? null}`;
    expect(again).toEqual({ target_ref: retry.providerRef, state: "PLANNED" });
  });

  it("can't be kept as done where its target is completed", async () => {
    const { voidId, amendment } = await refusedVoid("target-completed");
    await expect(decide(voidId, { kind: "keep" })).rejects.toMatchObject({ code: "target-contradicts" });
    expect(await getOperation(test.ledger, "acme", amendment)).toMatchObject({ state: "PLANNED", openDependencies: 1 });
  });

  it("kept as done releases what waited", async () => {
    const { voidId, amendment } = await refusedVoid();
    await decide(voidId, { kind: "keep" });
    expect(await getOperation(test.ledger, "acme", voidId)).toMatchObject({ state: "CONFIRMED", basis: "person" });
    expect(await getOperation(test.ledger, "acme", amendment)).toMatchObject({ state: "PLANNED", openDependencies: 0 });
  });
});

describe("a decision that may not stand changes nothing", () => {
  it.each([
    ["an unknown reference", { kind: "keep", providerRef: "sr_nowhere" }, {}, "reference-unknown"],
    ["a draft kept as sent", { kind: "keep", providerRef: "sr_draft" }, {}, "reference-is-a-draft"],
    ["no reason", { kind: "abandon" }, { why: " " }, "reason-missing"],
    ["nobody", { kind: "abandon" }, { who: "" }, "reason-missing"],
    [
      "a reason that names somebody by address",
      { kind: "abandon" },
      { why: "asked by anna@example.com" },
      "reason-unsuitable",
    ],
    ["outdated evidence", { kind: "abandon" }, { evidenceNo: 1 }, "evidence-moved"],
    ["inside the window", { kind: "abandon" }, { quiescenceMs: 600_000 }, "too-early"],
    ["another tenant's", { kind: "abandon" }, { tenantId: "bravo" }, "not-found"],
  ] as const)("%s", async (_name, decision, more, code) => {
    const id = await planSend(test);
    await inReview(id, [`sr_1_of_${id}`, `sr_2_of_${id}`]);
    await recordEvidence(test.ledger.sql, {
      ...by,
      operationId: id,
      providerRef: `sr_draft_${id}`,
      role: "draft",
      source: "lookup",
    });
    const before = await snapshot(id);
    const meant =
      decision.kind === "keep" && decision.providerRef === "sr_draft"
        ? { ...decision, providerRef: `sr_draft_${id}` }
        : decision;
    await expect(decide(id, meant, more)).rejects.toMatchObject({ code });
    expect(await snapshot(id)).toEqual(before);
  });

  it("where the state has moved on", async () => {
    const id = await planSend(test);
    await expect(decide(id, { kind: "abandon" })).rejects.toMatchObject({
      code: "not-in-review",
      detail: { state: "PLANNED" },
    });
    expect(await state(id)).toBe("PLANNED");
  });

  it("two reviewers at once: one wins, the other is told who did", async () => {
    const id = await planSend(test);
    await inReview(id, ["sr_x", "sr_y"]);
    const outcomes = await Promise.allSettled([
      decide(id, { kind: "keep", providerRef: "sr_x" }, { who: "reviewer-1" }),
      decide(id, { kind: "keep", providerRef: "sr_y" }, { who: "reviewer-2" }),
    ]);
    const lost = outcomes.filter((each) => each.status === "rejected");
    expect(lost).toHaveLength(1);
    expect(lost[0]?.reason).toMatchObject({
      code: "not-in-review",
      detail: { decidedBy: expect.stringMatching(/^person:reviewer-[12]$/) },
    });
    expect(await voidsOf(id)).toHaveLength(1);
  });

  it("a decision cannot be rewritten, also not from psql", async () => {
    await expect(
      test.ledger.sql`UPDATE operation_event SET evidence = '{}' WHERE reason = 'kept-by-review'`,
    ).rejects.toMatchObject({ code: "CS003" });
  });
});

describe("a duplicate ticket", () => {
  async function confirmedTwice() {
    const id = await planSend(test);
    const owner = randomUUID();
    await claimForSubmit(test.ledger, [{ ...by, operationId: id, owner, leaseMs: 60_000 }]);
    await confirm(test.ledger, [
      {
        ...by,
        operationId: id,
        owner,
        evidenceNo: 0,
        providerRef: `kept_${id}`,
        observation: {},
        basis: "proof",
        signingStatus: "SENT",
      },
    ]);
    await recordEvidence(test.ledger.sql, { ...by, operationId: id, providerRef: `other_${id}`, source: "lookup" });
    const ticket = (await listTickets(test.ledger, "acme")).find((each) => each.subjectId === id);
    return { id, ticketId: ticket?.ticketId ?? "", kind: ticket?.kind };
  }
  const decision = {
    tenantId: "acme",
    who: "reviewer-1",
    why: "the customer signs this one",
    basis: "person",
    evidenceNo: 2,
    voidRequest,
  } as const;

  it.each(["kept", "other"] as const)(
    "may keep the %s one: the other gets a ledgered VOID, the row keeps its truth",
    async (which) => {
      const { id, ticketId, kind } = await confirmedTwice();
      expect(kind).toBe("duplicate");
      const before = await getOperation(test.ledger, "acme", id);
      await decideDuplicate(test.ledger, { ...decision, ticketId, keep: `${which}_${id}` });
      const after = await getOperation(test.ledger, "acme", id);
      expect([after?.state, after?.providerRef]).toEqual([before?.state, before?.providerRef]);
      const gone = which === "kept" ? "other" : "kept";
      expect((await voidsOf(id)).map((row) => row.target_ref)).toEqual([`${gone}_${id}`]);
      await expect(
        decideDuplicate(test.ledger, { ...decision, ticketId, keep: `${which}_${id}` }),
      ).rejects.toMatchObject({ code: "ticket-closed" });
    },
  );

  it("never voids what is completed, and refuses what is not this operation's", async () => {
    const { id, ticketId } = await confirmedTwice();
    await expect(decideDuplicate(test.ledger, { ...decision, ticketId, keep: "sr_nowhere" })).rejects.toMatchObject({
      code: "reference-unknown",
    });
    await test.ledger.sql`UPDATE contract_signing SET status = 'COMPLETED' WHERE provider_ref = ${`kept_${id}`}`;
    const { leftAlone, planned } = await decideDuplicate(test.ledger, { ...decision, ticketId, keep: `other_${id}` });
    expect([leftAlone, planned.length]).toEqual([1, 0]);
  });

  it("what is planned against the operation afterwards acts on the reference that stays", async () => {
    const { id, ticketId } = await confirmedTwice();
    await decideDuplicate(test.ledger, { ...decision, ticketId, keep: `other_${id}` });
    const later = await planVoid(test, id);
    expect((await voidsOf(id)).find((row) => row.operation_id === later)?.target_ref).toBe(`other_${id}`);
  });

  it("is not decided on evidence that has moved, for a draft, or for what is being voided", async () => {
    const { id, ticketId } = await confirmedTwice();
    const keep = `other_${id}`;
    await expect(decideDuplicate(test.ledger, { ...decision, ticketId, keep, evidenceNo: 1 })).rejects.toMatchObject({
      code: "evidence-moved",
    });
    await recordEvidence(test.ledger.sql, {
      ...by,
      operationId: id,
      providerRef: `draft_${id}`,
      role: "draft",
      source: "lookup",
    });
    const now = { ...decision, ticketId, evidenceNo: 3 };
    await expect(decideDuplicate(test.ledger, { ...now, keep: `draft_${id}` })).rejects.toMatchObject({
      code: "reference-is-a-draft",
    });
    await planVoid(test, id);
    await expect(decideDuplicate(test.ledger, { ...now, keep: `kept_${id}` })).rejects.toMatchObject({
      code: "reference-being-voided",
    });
    expect(await voidsOf(id)).toHaveLength(1);
  });
});
