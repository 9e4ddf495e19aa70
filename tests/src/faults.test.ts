import { randomUUID } from "node:crypto";
import { submitOperation } from "@countersign/app-submit-worker";
import { explain } from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pdf, Scene } from "./harness.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
});
afterAll(async () => {
  await scene.stop();
});

describe("fault by fault, one request at the provider and a history that explains it", () => {
  const cases = [
    // fault, requests, passes through UNKNOWN, arrivals
    ["none", "CONFIRMED", 1, false],
    ["lost-response", "CONFIRMED", 1, true],
    ["hang", "CONFIRMED", 1, true],
    ["hang-after-commit", "CONFIRMED", 1, true],
    ["5xx-after-commit", "CONFIRMED", 1, true],
    ["5xx-before-commit", "CONFIRMED", 1, true],
    ["truncated-2xx", "CONFIRMED", 1, true],
    ["truncated-chunked", "CONFIRMED", 1, true],
    ["unparsable-2xx", "CONFIRMED", 1, true],
    ["empty-2xx", "CONFIRMED", 1, true],
    ["slow-commit", "CONFIRMED", 1, true],
    ["late-commit", "CONFIRMED", 1, true],
    ["reset-before-any-byte", "CONFIRMED", 1, true],
    ["reset-before-commit", "CONFIRMED", 1, true],
  ] as const;
  for (const [fault, state, requests, unknown] of cases) {
    it(`${fault} ends ${state} with ${requests} request`, async () => {
      const { operationId } = await scene.planSend();
      if (fault !== "none") scene.simulator.script({ kind: fault, operationId });
      const operation = await scene.settle(operationId);
      expect(operation.state).toBe(state);
      expect(scene.books(operationId).requests).toBe(requests);
      expect(scene.books(operationId).mails).toBe(1);
      const history = await scene.history(operationId);
      expect(history.some((line) => line.toState === "UNKNOWN")).toBe(unknown);
      const { answer, sent } = explain(operation, history);
      expect([sent, answer.slice(0, 3)]).toEqual(["yes", "Yes"]);
      // Only evidence leads back to PLANNED.
      for (const line of history.filter((each) => each.toState === "PLANNED" && each.fromState === "RECONCILING")) {
        expect(line.reason).toMatch(/^(absence-proven|every-attempt-closed)$/);
      }
    });
  }

  it("429 pauses the connection and is sent once it is over, with no lookup spent", async () => {
    const { operationId } = await scene.planSend();
    scene.simulator.script({ kind: "429-burst", operationId, retryAfterSeconds: 1 });
    const operation = await scene.settle(operationId);
    expect(operation.state).toBe("CONFIRMED");
    expect(scene.books(operationId).requests).toBe(1);
    const history = await scene.history(operationId);
    expect(
      history.find((line) => line.toState === "PLANNED" && line.fromState === "RECONCILING")?.evidence,
    ).toMatchObject({
      asked: "record",
    });
  });

  it("a lookup that lags never proves absence: nothing is sent twice", async () => {
    const { operationId } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId });
    scene.simulator.setFaults({ rates: { "lookup-lag": 1 }, lookupLagMs: 600 });
    const operation = await scene.settle(operationId);
    scene.simulator.setFaults({ rates: { "lookup-lag": 0 } });
    expect(operation.state).toBe("CONFIRMED");
    expect(scene.books(operationId)).toMatchObject({ requests: 1, arrivals: 1 });
  });

  it("a lookup that fails proves nothing", async () => {
    const { operationId } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId });
    scene.simulator.setFaults({ rates: { "lookup-fail": 1 } });
    const stuck = await scene.settle(operationId, { timeoutMs: 1_500 });
    expect(stuck.state).toBe("UNKNOWN");
    scene.simulator.setFaults({ rates: { "lookup-fail": 0 } });
    expect((await scene.settle(operationId)).state).toBe("CONFIRMED");
    expect(scene.books(operationId)).toMatchObject({ requests: 1, arrivals: 1 });
  });

  it("two matches go to a person, who owns a ticket, and nothing more is sent", async () => {
    const payload = scene.payload();
    const { operationId } = await scene.planSend({ payload });
    scene.simulator.script({ kind: "lost-response", operationId });
    await submitOperation(scene.submit, "acme", operationId);
    // Somebody else's hand makes a second request with the same metadata, under another key.
    const ids = { tenantId: "acme", operationId };
    const { request } = scene.prepared(scene.provider.prepare("SEND", payload, ids));
    const second = await scene.provider.submit("SEND", request, {
      ...ids,
      baseUrl: scene.simulator.url,
      credential: "wsk_test",
      providerKey: randomUUID(),
      document: () => Promise.resolve(pdf()),
      deadlineMs: 2_000,
      mayWrite: () => true,
      reportReference: () => Promise.resolve(),
    });
    expect(second.kind).toBe("accepted");
    const operation = await scene.settle(operationId);
    expect(operation).toMatchObject({ state: "NEEDS_REVIEW", reason: "more-than-one-match" });
    const [ticket] = await scene.ledger.sql<
      { owner: string }[]
    >`SELECT owner FROM ticket WHERE subject_id = ${operationId}`;
    expect(ticket?.owner).toBe("contracts-team");
    expect(scene.books(operationId).arrivals).toBe(2);
  });
});

it("fifty workers on one operation make one call", async () => {
  const { operationId } = await scene.planSend();
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, () => submitOperation(scene.submit, "acme", operationId)),
  );
  expect(outcomes.filter((outcome) => outcome.kind === "recorded")).toHaveLength(1);
  expect(scene.books(operationId)).toMatchObject({ requests: 1, arrivals: 1 });
});

it("a sender that wakes after its lease sends nothing, and says so", async () => {
  const { operationId } = await scene.planSend();
  let jumped = 0;
  const clocks = { monotonic: () => performance.now(), wall: () => Date.now() + jumped };
  const nearMisses: string[] = [];
  // Asleep between the claim and the first byte: the wall clock has moved on, the monotonic one has not.
  const connection = async (tenantId: string, connectionId: string) => {
    jumped = 60_000;
    return scene.submit.connection(tenantId, connectionId);
  };
  const outcome = await submitOperation(
    { ...scene.submit, clocks, connection, nearMiss: () => void nearMisses.push(operationId) },
    "acme",
    operationId,
  );
  expect(outcome).toMatchObject({ kind: "recorded", observation: "not-sent" });
  expect(nearMisses).toEqual([operationId]);
  expect(scene.books(operationId).arrivals).toBe(0);
  expect((await scene.history(operationId)).at(-1)?.reason).toBe("near-miss");
  expect((await scene.settle(operationId)).state).toBe("CONFIRMED");
});

it("a payload or document that no longer matches its approval is not sent: a person decides", async () => {
  const { operationId } = await scene.planSend();
  await scene.ledger.sql`ALTER TABLE approved_payload DISABLE TRIGGER cs_guard_payload`;
  await scene.ledger
    .sql`UPDATE approved_payload SET body_digest = decode(repeat('00', 32), 'hex') WHERE operation_id = ${operationId}`;
  await scene.ledger.sql`ALTER TABLE approved_payload ENABLE TRIGGER cs_guard_payload`;
  expect(await submitOperation(scene.submit, "acme", operationId)).toEqual({ kind: "payload-changed" });
  expect((await scene.operation(operationId)).state).toBe("NEEDS_REVIEW");
  expect(scene.books(operationId).arrivals).toBe(0);
});

it("no read, early job or repeated click moves what is under way", async () => {
  const { operationId } = await scene.planSend({ intentKey: "clicked-twice" });
  scene.simulator.script({ kind: "hang-after-commit", operationId });
  await submitOperation(scene.submit, "acme", operationId);
  const before = await scene.operation(operationId);
  expect(before.state).toBe("UNKNOWN");
  await submitOperation(scene.submit, "acme", operationId);
  const again = await scene.planSend({ intentKey: "clicked-twice" });
  expect(again).toMatchObject({ kind: "existing", operationId });
  expect(await scene.operation(operationId)).toEqual(before);
  expect(scene.books(operationId).arrivals).toBe(1);
});

describe("VOID", () => {
  it("is confirmed by looking at the target, as ours", async () => {
    const { operationId: target } = await scene.planSend();
    await scene.settle(target);
    const voidId = await scene.planVoid(target);
    const operation = await scene.settle(voidId);
    expect(operation).toMatchObject({ state: "CONFIRMED", cause: "ours" });
    expect(scene.books(target).withdrawals).toBe(1);
  });

  it("with a lost response is looked up, never sent twice", async () => {
    const { operationId: target } = await scene.planSend();
    await scene.settle(target);
    const voidId = await scene.planVoid(target);
    scene.simulator.script({ kind: "lost-response", endpoint: "withdraw" });
    const operation = await scene.settle(voidId);
    expect(operation).toMatchObject({ state: "CONFIRMED", cause: "ours", attemptNo: 1 });
    expect(scene.books(target).withdrawals).toBe(1);
  });

  it("of a request withdrawn by another hand is confirmed as already over", async () => {
    const { operationId: target } = await scene.planSend();
    const { providerRef } = await scene.settle(target);
    scene.simulator.advance(providerRef ?? "", "withdrawn");
    const operation = await scene.settle(await scene.planVoid(target));
    expect(operation).toMatchObject({ state: "CONFIRMED", cause: "already-over" });
  });

  it("of a completed request goes to a person", async () => {
    const { operationId: target } = await scene.planSend();
    const { providerRef } = await scene.settle(target);
    scene.simulator.advance(providerRef ?? "", "completed");
    expect((await scene.settle(await scene.planVoid(target))).state).toBe("NEEDS_REVIEW");
  });

  it("of a SEND that was never sent ends both without a call", async () => {
    const { operationId: target } = await scene.planSend();
    const voidId = await scene.planVoid(target);
    expect((await scene.operation(target)).state).toBe("SUPERSEDED");
    expect((await scene.operation(voidId)).state).toBe("SUPERSEDED");
    expect(scene.books(target).arrivals).toBe(0);
  });
});

describe("amendments", () => {
  it("void-first: the new one is sent only after the old one is void", async () => {
    const { operationId: old } = await scene.planSend();
    await scene.settle(old);
    const outcome = await scene.planSend({ supersedes: old });
    const next = outcome.operationId;
    expect((await scene.operation(next)).openDependencies).toBe(1);
    const voidId = outcome.kind === "created" ? (outcome.alsoPlanned[0]?.operationId ?? "") : "";
    await scene.settle(voidId);
    expect((await scene.settle(next)).state).toBe("CONFIRMED");
    expect(scene.books(old).withdrawals).toBe(1);
  });

  it("send-first: the VOID waits until the new one is confirmed", async () => {
    const { operationId: old } = await scene.planSend();
    await scene.settle(old);
    const outcome = await scene.planSend({ supersedes: old, mode: "send-first" });
    const voidId = outcome.kind === "created" ? (outcome.alsoPlanned[0]?.operationId ?? "") : "";
    expect((await scene.operation(voidId)).openDependencies).toBe(1);
    await scene.settle(outcome.operationId);
    expect((await scene.settle(voidId)).state).toBe("CONFIRMED");
  });

  it("of an UNKNOWN one that never arrived: absence ends the old one, its VOID is retired, the new one is sent", async () => {
    const { operationId: old } = await scene.planSend();
    scene.simulator.script({ kind: "5xx-before-commit", operationId: old });
    await submitOperation(scene.submit, "acme", old);
    expect((await scene.operation(old)).state).toBe("UNKNOWN");
    const outcome = await scene.planSend({ supersedes: old });
    expect((await scene.settle(old)).state).toBe("SUPERSEDED");
    const voidId = outcome.kind === "created" ? (outcome.alsoPlanned[0]?.operationId ?? "") : "";
    expect(await scene.operation(voidId)).toMatchObject({ state: "SUPERSEDED", reason: "target-never-existed" });
    expect((await scene.settle(outcome.operationId)).state).toBe("CONFIRMED");
    expect(scene.books(old).requests).toBe(0);
  });

  it("happen once: a second one is refused and names the successor", async () => {
    const { operationId: old } = await scene.planSend();
    const { operationId: next } = await scene.planSend({ supersedes: old });
    await expect(scene.planSend({ supersedes: old })).rejects.toMatchObject({
      code: "already-superseded",
      detail: { successor: next },
    });
  });
});

it("two tenants with the same intent key have two operations, neither visible to the other", async () => {
  const mine = await scene.planSend({ intentKey: "shared" });
  const theirs = await scene.planSend({ tenantId: "bravo", intentKey: "shared" });
  expect([mine.kind, theirs.kind]).toEqual(["created", "created"]);
  await expect(scene.operation(mine.operationId, "bravo")).rejects.toThrow("no such operation");
  await scene.settle(theirs.operationId, { tenantId: "bravo" });
  expect((await scene.operation(mine.operationId)).state).toBe("PLANNED");
});
