import { createApiKey, recordEvidence } from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { by, person, ReviewBench } from "./review-bench.js";

let bench: ReviewBench;
beforeAll(async () => {
  bench = await ReviewBench.start();
});
afterAll(async () => {
  await bench.stop();
});

describe("a reference found by hand", () => {
  const byHand = (id: string, reference: string, evidenceNo: number) =>
    bench.reviewer.review(id, { ...person, decision: "keep", reference, foundByHand: true, evidenceNo });

  it("is read at the provider, and kept with the status that it has there", async () => {
    const { id, evidenceNo } = await bench.inReview();
    bench.answers.set(`hand_${id}`, { status: 200, body: { id: `hand_${id}`, status: "viewed" } });
    const { operation, planned } = await byHand(id, `hand_${id}`, evidenceNo);
    expect(operation).toMatchObject({ state: "CONFIRMED", providerRef: `hand_${id}`, signingStatuses: ["VIEWED"] });
    expect([planned, operation.basis]).toEqual([[], "person"]);
  });

  const record = (ref: string, more: object = {}) => ({ status: 200, body: { id: ref, status: "sent", ...more } });
  it.each([
    [
      "that the provider doesn't know",
      () => ({ status: 404, body: { error: { code: "not_found", message: "no" } } }),
      422,
      "reference-not-found",
    ],
    [
      "of another operation",
      (ref: string) => record(ref, { metadata: { tenant: "acme", operation_id: newId() } }),
      409,
      "reference-of-another-operation",
    ],
    [
      "of another tenant",
      (ref: string) => record(ref, { metadata: { tenant: "bravo" } }),
      409,
      "reference-of-another-operation",
    ],
    [
      "of a request that mailed nobody",
      (ref: string) => record(ref, { status: "staged" }),
      422,
      "reference-is-a-draft",
    ],
    ["while the provider fails", () => ({ status: 500 }), 503, "provider-unreachable"],
  ])("%s is refused and changes nothing", async (_name, answer, status, code) => {
    const { id, evidenceNo } = await bench.inReview();
    bench.answers.set(`hand_${id}`, answer(`hand_${id}`));
    const before = await bench.snapshot(id);
    const { status: answered, body } = await bench.api.call("POST", `/v1/operations/${id}/review`, {
      key: bench.api.keys.reviewer ?? null,
      body: JSON.stringify({ ...person, decision: "keep", reference: `hand_${id}`, foundByHand: true, evidenceNo }),
    });
    expect([answered, body.type]).toEqual([status, `/problems/${code}`]);
    expect(await bench.snapshot(id)).toEqual(before);
  });

  it("no reference at all is refused without a call, and so is what the ledger refuses anyway", async () => {
    const { id, evidenceNo } = await bench.inReview("a");
    const before = bench.asked.length;
    expect((await bench.refusal(id, () => byHand(id, "..", evidenceNo))).type).toBe("/problems/reference-not-found");
    expect((await bench.refusal(id, () => byHand(id, `hand_${id}`, 0))).type).toBe("/problems/evidence-moved");
    expect(bench.asked).toHaveLength(before);
  });

  it("that the ledger holds for another operation is refused, whatever the provider says", async () => {
    const { id, evidenceNo } = await bench.inReview();
    const { ref } = await bench.confirmed();
    bench.answers.set(ref, { status: 200, body: { id: ref, status: "sent" } });
    expect((await bench.refusal(id, () => byHand(id, ref, evidenceNo))).type).toBe(
      "/problems/reference-of-another-operation",
    );
  });
});

describe("a review that may not stand changes nothing", () => {
  it("names the evidence to look at", async () => {
    const { id, refs, evidenceNo } = await bench.inReview("a", "b");
    await recordEvidence(bench.api.ledger.sql, { ...by, operationId: id, providerRef: `c_${id}`, source: "webhook" });
    const problem = await bench.refusal(id, () =>
      bench.reviewer.review(id, { ...person, decision: "keep", reference: refs[0] ?? "", evidenceNo }),
    );
    expect(problem).toMatchObject({ status: 409, type: "/problems/evidence-moved", evidenceNo: evidenceNo + 1 });
  });

  it("where the operation has moved on, tells its state and who decided", async () => {
    const planned = await bench.send();
    const decide = (id: string, evidenceNo: number) =>
      bench.reviewer.review(id, { ...person, decision: "abandon", evidenceNo });
    expect(await bench.refusal(planned, () => decide(planned, 0))).toMatchObject({
      type: "/problems/not-in-review",
      state: "PLANNED",
    });
    const { id, evidenceNo } = await bench.inReview();
    await decide(id, evidenceNo);
    expect(await bench.refusal(id, () => decide(id, evidenceNo))).toMatchObject({
      state: "SUPERSEDED",
      decidedBy: "person:u-17",
    });
  });

  it("of another tenant, as if there were none", async () => {
    const { id, evidenceNo } = await bench.inReview("a");
    const { key } = await createApiKey(bench.api.ledger, "bravo", "reviewer", ["reviews:write"]);
    const decide = (operationId: string) =>
      bench.client(key).review(operationId, { ...person, decision: "abandon", evidenceNo });
    const foreign = await bench.refusal(id, () => decide(id));
    expect(foreign.status).toBe(404);
    expect(foreign).toEqual(await bench.refusal(id, () => decide(newId())));
  });

  it.each([
    ["keeping with a word on dependants", { decision: "keep", reference: "x", dependants: "release" }, "dependants"],
    ["abandoning a reference", { decision: "abandon", reference: "x" }, "reference"],
    ["found by hand, but what", { decision: "keep", foundByHand: true }, "reference"],
  ] as const)("said only half: %s", async (_name, body, field) => {
    const { id, evidenceNo } = await bench.inReview("a");
    const problem = await bench.refusal(id, () => bench.reviewer.review(id, { ...person, ...body, evidenceNo }));
    expect(problem).toMatchObject({ status: 422, type: "/problems/invalid", errors: [{ field }] });
  });

  it("with a replacement whose intent exists: neither is done", async () => {
    const { id, evidenceNo } = await bench.inReview("a");
    await bench.api.plan({ intentKey: `taken-${id}`, action: "SEND", payload: bench.payload() });
    const replacement = { intentKey: `taken-${id}`, payload: bench.payload() };
    const problem = await bench.refusal(id, () =>
      bench.reviewer.review(id, { ...person, decision: "abandon", evidenceNo, replacement }),
    );
    expect([problem.status, problem.type]).toEqual([409, "/problems/intent-exists"]);
  });

  it("inside the window after an attempt: says when to come back", async () => {
    const windowed = await ReviewBench.start({ quiescenceMs: 600_000 });
    try {
      const { id, evidenceNo } = await windowed.inReview();
      const answer = await windowed.api.call("POST", `/v1/operations/${id}/review`, {
        key: windowed.api.keys.reviewer ?? null,
        body: JSON.stringify({ ...person, decision: "abandon", evidenceNo }),
      });
      expect([answer.status, answer.body]).toMatchObject([409, { type: "/problems/too-early" }]);
      const left = Number(answer.headers.get("retry-after"));
      expect(left).toBe(Math.ceil(Number(answer.body.retryAfterMs) / 1_000));
      expect(left).toBeGreaterThan(500);
      const { operation } = await windowed.reviewer.ticket(await windowed.ticketOf(id, "needs-review"));
      expect(operation).toMatchObject({ state: "NEEDS_REVIEW", evidenceNo });
      expect(Date.parse(operation?.decidableFrom ?? "")).toBeGreaterThan(Date.now());
    } finally {
      await windowed.stop();
    }
  });
});

describe("a VOID in review that an amendment waits for", () => {
  async function waitingOnVoid() {
    const { id } = await bench.confirmed();
    const amendment = await bench.send({ supersedes: { operationId: id } });
    const [row] = await bench.api.ledger.sql<{ operation_id: string }[]>`
      SELECT operation_id FROM signing_operation WHERE target_operation_id = ${id} AND action = 'VOID'`;
    const voidId = row?.operation_id ?? "";
    return { voidId, amendment, evidenceNo: await bench.toReview(voidId) };
  }

  it("is not given up without saying what becomes of it; the ticket says so beforehand", async () => {
    const { voidId, amendment, evidenceNo } = await waitingOnVoid();
    const detail = await bench.reviewer.ticket(await bench.ticketOf(voidId, "needs-review"));
    expect(detail.operation).toMatchObject({
      action: "VOID",
      waiting: [{ operationId: amendment, action: "SEND", relation: "void-first" }],
      decisions: [
        { decision: "keep", dependants: [] },
        { decision: "abandon", dependants: ["release", "retire", "retry"] },
      ],
    });
    const abandon = (more: { dependants?: "release" } = {}) =>
      bench.reviewer.review(voidId, { ...person, decision: "abandon", evidenceNo, ...more });
    expect(await bench.refusal(voidId, abandon)).toMatchObject({
      status: 409,
      type: "/problems/dependants-undecided",
      waiting: [amendment],
    });
    expect(await abandon({ dependants: "release" })).toMatchObject({ operation: { state: "SUPERSEDED" }, planned: [] });
    expect(await bench.reviewer.get(amendment)).toMatchObject({ state: "PLANNED", waitsFor: 0 });
  });

  it("retry: a new VOID goes out, and the amendment waits for that one", async () => {
    const { voidId, amendment, evidenceNo } = await waitingOnVoid();
    const decided = await bench.reviewer.review(voidId, {
      ...person,
      decision: "abandon",
      evidenceNo,
      dependants: "retry",
    });
    expect(decided.planned).toHaveLength(1);
    expect(await bench.reviewer.get(amendment)).toMatchObject({ state: "PLANNED", waitsFor: 1 });
  });
});
