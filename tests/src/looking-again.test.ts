import { randomUUID } from "node:crypto";
import { reconcileOperation } from "@countersign/app-reconcile-worker";
import { submitOperation } from "@countersign/app-submit-worker";
import {
  claimForReconcile,
  claimForSubmit,
  explain,
  getNearMisses,
  holdSending,
  knownReferences,
  listTickets,
  openAgedTickets,
  recordEvidence,
  releaseHold,
  resumeConnection,
  review,
  sent,
  setRate,
} from "@countersign/ledger";
import { createLogger } from "@countersign/runtime";
import { Permits, ProviderHealth } from "@countersign/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fastWindows, Scene } from "./harness.js";
import { until } from "./real-processes.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
});
afterAll(async () => {
  await scene.stop();
});

const ticketsOf = async (id: string) =>
  (await listTickets(scene.ledger, "acme")).filter((ticket) => ticket.subjectId === id);
const kinds = async (id: string) => (await ticketsOf(id)).map((ticket) => `${ticket.kind} ${ticket.reason}`);

/** Runs the first audit once its window is over. */
const audited = (id: string) =>
  until(
    () => scene.work("audit", id),
    (ends) => ends.some((end) => end !== "inside-the-window" && end !== "not-claimed"),
  );

describe("after the end, looked at once more", () => {
  it("an operation whose attempt was in doubt: twice, and what is new opens one duplicate ticket", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId: id });
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    const items = await scene.ledger.sql`SELECT 1 FROM work_item WHERE kind = 'audit' AND subject_id = ${id}`;
    expect(items).toHaveLength(2);
    await scene.makeAgain(id);
    expect(await audited(id)).toContain("more-found");
    expect(await kinds(id)).toEqual(["duplicate another-reference"]);
    const after = await scene.operation(id);
    expect(after.state).toBe("CONFIRMED");
    expect((await scene.history(id)).at(-1)).toMatchObject({ kind: "audit", reason: "more-found" });
  });

  it("one that was cleanly accepted: not at all", async () => {
    const { operationId: id } = await scene.planSend();
    await scene.settle(id);
    expect(await scene.ledger.sql`SELECT 1 FROM work_item WHERE subject_id = ${id}`).toHaveLength(0);
  });

  it("a failed one that exists all the same opens a ticket, and the row stays what it was", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.script({ kind: "reset-before-commit", operationId: id });
    scene.simulator.script({ kind: "answer", status: 422, code: "invalid_signers", operationId: id });
    expect((await scene.settle(id)).state).toBe("TERMINAL_FAILED");
    await scene.makeAgain(id);
    expect(await audited(id)).toContain("more-found");
    expect(await kinds(id)).toEqual(["duplicate failed-yet-exists"]);
    expect((await scene.operation(id)).state).toBe("TERMINAL_FAILED");
  });

  it("a confirmed VOID whose target is completed after all is a signing conflict", async () => {
    const { operationId: id } = await scene.planSend();
    await scene.settle(id);
    const voidId = await scene.planVoid(id);
    expect((await scene.settle(voidId)).state).toBe("CONFIRMED");
    expect(await audited(voidId)).toContain("as-said");
    // The second look, a day later: meanwhile the provider tells another story.
    const ref = scene.requests(id)[0]?.id ?? "";
    const completed = { kind: "found", matches: [{ ref, status: "completed" }], pages: 1, ms: 1 } as const;
    const provider = Object.create(scene.provider, { lookup: { value: async () => completed } });
    await scene.ledger.sql`UPDATE work_item SET not_before = now(), run_after = now() WHERE subject_id = ${voidId}`;
    expect(await scene.work("audit", voidId, { ...scene.reconcile, provider: () => provider })).toContain(
      "void-confirmed-but-target-completed",
    );
    expect(await kinds(voidId)).toEqual(["signing-conflict void-confirmed-but-target-completed"]);
  });

  it("a look that fails every time is done again later, and becomes a person's", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.settle(id);
    await until(
      () => scene.work("audit", id, { ...scene.reconcile, provider: () => undefined }),
      async () => (await kinds(id)).length > 0,
    );
    expect(await kinds(id)).toEqual(["dead-letter audit-fails"]);
    await scene.ledger.sql`UPDATE work_item SET not_before = now() WHERE subject_id = ${id}`;
    expect(await audited(id)).toContain("nothing-new");
  });

  it("drafts that an ended SEND left behind are discarded by a ledgered VOID, and nobody is mailed for them", async () => {
    const { operationId: id } = await scene.planSend({
      payload: scene.payload({ documents: [], template: { id: "tpl_contract" } }),
    });
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.submitOnce(id);
    const draft = await scene.stageAgain(id);
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    await audited(id);
    const [voided] = await scene.ledger.sql<{ operation_id: string; target_ref: string }[]>`
      SELECT operation_id, target_ref FROM signing_operation WHERE target_operation_id = ${id} AND action = 'VOID'`;
    expect(voided?.target_ref).toBe(draft);
    expect(await scene.settle(voided?.operation_id ?? "")).toMatchObject({
      state: "CONFIRMED",
      reason: "target-is-discarded",
    });
    expect(scene.books(id).mails).toBe(1);
    expect(
      scene
        .requests(id)
        .map((each) => each.status)
        .sort(),
    ).toEqual(["discarded", "sent"]);
  });
});

describe("did it go out?", () => {
  it("a document that was only staged never did, also after it is discarded", async () => {
    const payload = scene.payload({ documents: [], template: { id: "tpl_contract" }, stageOnly: true });
    const { operationId: id } = await scene.planSend({ payload });
    const answer = async () => sent(await scene.operation(id));
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    expect(await answer()).toBe("no");
    expect((await scene.settle(await scene.planVoid(id))).reason).toBe("target-is-discarded");
    expect([await answer(), (await scene.operation(id)).signingStatuses]).toEqual(["no", ["DISCARDED"]]);
  });

  it("one of two that a person kept did: the provider's own word counts", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.submitOnce(id);
    await scene.makeAgain(id);
    const operation = await scene.settle(id);
    expect(operation.reason).toBe("more-than-one-match");
    const [first] = await knownReferences(scene.ledger.sql, "acme", id);
    // The one that was made first stands first.
    expect(first).toMatchObject({ providerRef: scene.requests(id)[0]?.id, status: "SENT" });
    await until(
      () =>
        review(scene.ledger, {
          tenantId: "acme",
          operationId: id,
          evidenceNo: operation.evidenceNo,
          who: "u-17",
          why: "first one",
          basis: "person",
          decision: { kind: "keep", providerRef: first?.providerRef ?? "" },
          quiescenceMs: fastWindows.quiescenceMs,
          voidRequest: scene.voidRequest(),
        }).then(
          () => true,
          () => false,
        ),
      (decided) => decided,
    );
    expect(sent(await scene.operation(id))).toBe("yes");
  });
});

describe("guards that worked stand in the timeline", () => {
  it("a second worker that comes while one is calling", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.configure({ latencyMs: 150 });
    await Promise.all([
      submitOperation(scene.submit, "acme", id),
      new Promise((resolve) => setTimeout(resolve, 60)).then(() => submitOperation(scene.submit, "acme", id)),
    ]);
    scene.simulator.configure({ latencyMs: 0 });
    const misses = await getNearMisses(scene.ledger, "acme", id);
    expect(misses.map(({ kind }) => kind)).toEqual(["claim-lost"]);
    expect(explain(await scene.operation(id), await scene.history(id), misses).because.join()).toContain(
      "sent nothing (claim-lost",
    );
    expect(scene.books(id).arrivals).toBe(1);
  });

  it("a sender that wakes after its lease", async () => {
    const { operationId: id } = await scene.planSend();
    let wall = 0;
    const clocks = { monotonic: () => 0, wall: () => (wall += fastWindows.leaseMs) };
    await submitOperation({ ...scene.submit, clocks }, "acme", id);
    expect((await getNearMisses(scene.ledger, "acme", id)).map(({ kind }) => kind)).toContain("woke-after-lease");
    expect(scene.books(id).arrivals).toBe(0);
  });

  it("a verdict that newer evidence overtook", async () => {
    const { operationId: id } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.submitOnce(id);
    const [request] = scene.requests(id);
    // The event arrives between the look and the verdict.
    const connection = async (tenantId: string, connectionId: string) => {
      await recordEvidence(scene.ledger.sql, {
        tenantId,
        operationId: id,
        providerRef: request?.id ?? "",
        source: "webhook",
        actor: "webhook-apply",
        reason: "event-with-our-metadata",
      });
      return await scene.reconcile.connection(tenantId, connectionId);
    };
    await scene.ledger.sql`UPDATE signing_operation SET due_at = now() WHERE operation_id = ${id}`;
    await reconcileOperation({ ...scene.reconcile, connection }, "acme", id);
    expect((await getNearMisses(scene.ledger, "acme", id)).map(({ kind }) => kind)).toEqual(["stale-verdict"]);
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    expect(scene.books(id)).toMatchObject({ requests: 1, arrivals: 1 });
  });
});

describe("a hold", () => {
  it.each([
    ["of the tenant", {}],
    ["of a connection", { connectionId: "held" }],
    ["of an action", { action: "SEND" }],
  ])("%s lets planning go on and sends nothing until it is released", async (name, scope) => {
    if (name === "of a connection") await scene.connect("held");
    const connectionId = name === "of a connection" ? "held" : "main";
    const holdId = await holdSending(scene.ledger, { tenantId: "acme", ...scope, by: "u-1", reason: "wrong template" });
    const { operationId: id, kind } = await scene.planSend({ connectionId });
    expect(kind).toBe("created");
    for (let index = 0; index < 3; index += 1) await scene.submitOnce(id);
    expect([(await scene.operation(id)).state, scene.books(id).arrivals]).toEqual(["PLANNED", 0]);
    const [held] = await scene.ledger.sql<
      { later: boolean }[]
    >`SELECT due_at > now() + interval '10 seconds' AS later FROM signing_operation WHERE operation_id = ${id}`;
    expect(held?.later).toBe(true);
    await releaseHold(scene.ledger, "acme", holdId, "u-1");
    const [released] = await scene.ledger.sql<
      { soon: boolean }[]
    >`SELECT due_at < now() + interval '10 seconds' AS soon FROM signing_operation WHERE operation_id = ${id}`;
    expect(released?.soon).toBe(true);
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
  });

  it("ends by itself", async () => {
    await holdSending(scene.ledger, { tenantId: "bravo", by: "u-1", reason: "short", forMs: 50 });
    const { operationId: id } = await scene.planSend({ tenantId: "bravo" });
    await scene.submitOnce(id, "bravo");
    expect((await scene.operation(id, "bravo")).state).toBe("PLANNED");
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect((await scene.settle(id, { tenantId: "bravo" })).state).toBe("CONFIRMED");
  });
});

describe("a provider that is down", () => {
  it("is probed by one, and what waited goes out once it answers", async () => {
    await scene.connect("down");
    const logger = createLogger({ name: "down", level: "silent" });
    const circuit = { failures: 3, probeMs: 50 };
    const health = new ProviderHealth(scene.ledger, circuit, logger);
    const submit = { ...scene.submit, health, circuitWaitMs: 50 };
    const reconcile = { ...scene.reconcile, health, circuit };
    scene.simulator.setFaults({ rates: { "5xx-before-commit": 1, "lookup-fail": 1 } });
    const ids: string[] = [];
    for (let index = 0; index < 8; index += 1) ids.push((await scene.planSend({ connectionId: "down" })).operationId);
    for (const id of ids) await submitOperation(submit, "acme", id);
    const arrived = () => ids.filter((id) => scene.books(id).arrivals > 0).length;
    expect(arrived()).toBe(3);
    for (const id of ids) await reconcileOperation(reconcile, "acme", id);
    expect((await scene.work("probe", "down")).every((end) => end === "still-down")).toBe(true);
    scene.simulator.setFaults({ rates: { "5xx-before-commit": 0, "lookup-fail": 0 } });
    await until(
      () => scene.work("probe", "down"),
      (ends) => ends.includes("closed"),
    );
    for (const id of ids) expect((await scene.settle(id)).state).toBe("CONFIRMED");
    for (const id of ids) expect(scene.books(id).requests).toBe(1);
  });

  it("whose lookups don't exist is half-opened by time", async () => {
    await scene.connect("down-bare", { provider: "bare" });
    await scene.ledger.sql`
      UPDATE provider_connection SET circuit_opened_at = now(), circuit_failures = 5 WHERE connection_id = 'down-bare'`;
    await scene.ledger.sql`
      INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after, not_before)
      VALUES ('acme', ${randomUUID()}, 'probe', 'down-bare', 'down-bare', now(), now())`;
    const { operationId: id } = await scene.planSend({ connectionId: "down-bare" });
    await scene.submitOnce(id);
    expect(scene.books(id).arrivals).toBe(0);
    expect(await scene.work("probe", "down-bare")).toEqual(["half-opened"]);
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
  });
});

it("permits: two processes together keep to the rate of the connection, and what waits too long is told so", async () => {
  await scene.connect("limited", { ratePerSecond: 20 });
  const connection = await scene.submit.connection("acme", "limited");
  const [one, two] = [new Permits(scene.ledger), new Permits(scene.ledger)];
  const from = performance.now();
  await Promise.all(Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? one : two).take(connection, 10_000)));
  // Thirty calls at twenty a second are a second and a half of permits, whoever took them.
  expect(performance.now() - from).toBeGreaterThan(1_200);
  const late = await Promise.all(Array.from({ length: 30 }, () => one.take(connection, 200)));
  expect(late).toContain(false);
  await setRate(scene.ledger, "acme", "limited", null);
  expect(await one.take({ ...connection, ratePerSecond: null }, 0)).toBe(true);
});

it("ages open one owned ticket per operation, never move a state, and close with the operation", async () => {
  const { operationId: id } = await scene.planSend({ tenantId: "bravo" });
  scene.simulator.setFaults({ rates: { "lost-response": 1, "lookup-fail": 1 } });
  await scene.submitOnce(id, "bravo");
  await scene.ledger.sql`ALTER TABLE signing_operation DISABLE TRIGGER cs_guard_operation`;
  // A day ago: the id carries the time, too, so an old one is made.
  await scene.ledger
    .sql`UPDATE signing_operation SET first_attempt_at = now() - interval '1 day' WHERE operation_id = ${id}`;
  await scene.ledger.sql`ALTER TABLE signing_operation ENABLE TRIGGER cs_guard_operation`;
  await scene.ledger
    .sql`UPDATE tenant SET thresholds = thresholds || '{"age-unknown":0,"age-planned":0}' WHERE tenant_id = 'bravo'`;
  await until(
    () => openAgedTickets(scene.ledger),
    (opened) => opened === 1,
  );
  expect(await openAgedTickets(scene.ledger)).toBe(0);
  expect((await listTickets(scene.ledger, "bravo")).map((each) => [each.kind, each.owner, each.subjectId])).toEqual([
    ["aged", "contracts-team", id],
  ]);
  expect((await scene.operation(id, "bravo")).state).toBe("UNKNOWN");
  scene.simulator.setFaults({ rates: { "lost-response": 0, "lookup-fail": 0 } });
  await scene.settle(id, { tenantId: "bravo" });
  await openAgedTickets(scene.ledger);
  expect((await listTickets(scene.ledger, "bravo")).filter((each) => each.kind === "aged")).toEqual([]);
});

it("the reconciler's claim is refused while the connection is paused, and goes through on what is on record", async () => {
  await scene.connect("paused");
  const { operationId: id } = await scene.planSend({ connectionId: "paused" });
  scene.simulator.script({ kind: "lost-response", operationId: id });
  await scene.submitOnce(id);
  await scene.ledger.sql`UPDATE provider_connection SET paused_until = 'infinity' WHERE connection_id = 'paused'`;
  const row = { tenantId: "acme", operationId: id, owner: randomUUID(), leaseMs: 1_000, actor: "t", reason: "t" };
  expect((await claimForReconcile(scene.ledger, row)).applied).toBe(false);
  const [request] = scene.requests(id);
  await recordEvidence(scene.ledger.sql, { ...row, providerRef: request?.id ?? "", source: "webhook" });
  expect((await scene.settle(id)).state).toBe("CONFIRMED");
  await resumeConnection(scene.ledger, "acme", "paused");
});

it("a claim is never made twice, whatever is held, paused or limited", async () => {
  const { operationId: id } = await scene.planSend();
  const row = () => ({
    tenantId: "acme",
    operationId: id,
    owner: randomUUID(),
    leaseMs: 1_000,
    actor: "t",
    reason: "t",
  });
  const claims = await Promise.all(Array.from({ length: 20 }, () => claimForSubmit(scene.ledger, [row()])));
  expect(claims.filter(([claim]) => claim?.applied === true)).toHaveLength(1);
  expect((await knownReferences(scene.ledger.sql, "acme", id)).length).toBe(0);
});
