import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TransitionInput } from "./edge-types.js";
import { type EdgeName, edges, legalPairs } from "./edges.js";
import { getHistory, getOperation } from "./index.js";
import { type State, states } from "./state.js";
import { planSend, planVoid, startTestLedger, type TestLedger } from "./testing.js";
import { claimForReconcile, claimForSubmit, confirm, findState, markUnknown, transition } from "./transitions.js";

let test: TestLedger;
let plain: postgres.Sql;
beforeAll(async () => {
  test = await startTestLedger();
  plain = postgres(test.url, { max: 2, onnotice: () => undefined });
});
afterAll(async () => {
  await plain.end();
  await test.stop();
});

const owner = randomUUID();
const base = (operationId: string): TransitionInput => ({
  tenantId: "acme",
  operationId,
  owner,
  leaseMs: 60_000,
  dueMs: 0,
  actor: "test",
  reason: "test",
  basis: "proof",
  quiescenceMs: 0,
  spacingMs: 0,
  confirmations: 1,
  sendBeforeMs: 60_000,
  observation: { kind: "refused" },
});

async function step(edge: EdgeName, operationId: string, more: Partial<TransitionInput> = {}): Promise<void> {
  const found = await findState(test.ledger.sql, "acme", operationId);
  const outcome = await transition(test.ledger, edge, {
    ...base(operationId),
    ...(found === undefined ? {} : { evidenceNo: found.evidenceNo }),
    ...more,
  });
  if (!outcome.applied) throw new Error(`could not reach the state: ${edge} found ${outcome.found?.state}`);
}

const future = "2100-01-01T00:00:00Z";

/** Brings a fresh operation into a state, by legal edges only. */
async function operationIn(state: State): Promise<string> {
  const id = await planSend(test);
  const ref = { providerRef: `sr_${id}`, shows: true, signingStatus: "SENT" };
  if (state === "PLANNED") return id;
  if (state === "SUPERSEDED") {
    await step("supersedePlanned", id);
    return id;
  }
  await step("claimForSubmit", id);
  if (state === "IN_FLIGHT") return id;
  if (state === "CONFIRMED") await step("confirm", id, ref);
  else if (state === "TERMINAL_FAILED") await step("refuse", id);
  else {
    await step("markUnknown", id);
    if (state === "UNKNOWN") return id;
    await step("claimForReconcile", id);
    if (state === "NEEDS_REVIEW") await step("conflict", id);
  }
  return id;
}

/** Attempts the edge with everything its guard asks for, so that only the state can refuse it. */
async function attempt(edge: EdgeName, operationId: string) {
  const found = await findState(test.ledger.sql, "acme", operationId);
  return transition(test.ledger, edge, {
    ...base(operationId),
    evidenceNo: found?.evidenceNo ?? 0,
    beganAt: future,
    providerRef: `sr_${operationId}`,
    signingStatus: "SENT",
  });
}

describe("every edge, from every state", () => {
  for (const edge of Object.keys(edges) as EdgeName[]) {
    for (const state of states) {
      if (edges[edge].from === state) continue;
      it(`${edge} is refused in ${state} and changes nothing`, async () => {
        const id = await operationIn(state);
        const before = await getOperation(test.ledger, "acme", id);
        const outcome = await attempt(edge, id);
        expect(outcome).toMatchObject({ applied: false, found: { state } });
        expect(await getOperation(test.ledger, "acme", id)).toEqual(before);
      });
    }
  }
});

describe("every pair of states, over a plain SQL connection", () => {
  const legal = new Set(legalPairs().map(([from, to]) => `${from} ${to}`));
  for (const from of states) {
    for (const to of states) {
      if (from === to) continue;
      it(`${from} to ${to} is ${legal.has(`${from} ${to}`) ? "allowed" : "refused by the database"}`, async () => {
        const id = await operationIn(from);
        const live = to === "IN_FLIGHT" || to === "RECONCILING";
        const final = to === "CONFIRMED" || to === "TERMINAL_FAILED" || to === "SUPERSEDED";
        const update = plain`
          UPDATE signing_operation SET state = ${to}, event_no = event_no + 1, proof_seq = event_no + 1,
            provider_ref = ${to === "CONFIRMED" ? `ref-${id}` : null},
            lease_owner = ${live ? owner : null}::uuid,
            lease_expires_at = ${live ? plain`now() + interval '1 minute'` : null},
            due_at = ${final || to === "NEEDS_REVIEW" ? null : plain`now()`},
            attempt_no = attempt_no + ${to === "IN_FLIGHT" && from === "PLANNED" ? 1 : 0},
            first_attempt_at = COALESCE(first_attempt_at, ${to === "IN_FLIGHT" && from === "PLANNED" ? plain`now()` : null}),
            quiet_from = COALESCE(quiet_from, ${to === "IN_FLIGHT" && from === "PLANNED" ? plain`now()` : null}),
            finished_at = ${final ? plain`COALESCE(finished_at, now())` : null}
          WHERE tenant_id = 'acme' AND operation_id = ${id}`;
        if (legal.has(`${from} ${to}`)) {
          expect((await update).count).toBe(1);
        } else {
          await expect(update).rejects.toMatchObject({ code: expect.stringMatching(/^CS00[12]$/) });
          expect((await findState(test.ledger.sql, "acme", id))?.state).toBe(from);
        }
      });
    }
  }
});

describe("the database refuses, also from psql,", () => {
  for (const [column, value] of [
    ["payload_hash", "decode(repeat('00', 32), 'hex')"],
    ["provider_key", "gen_random_uuid()"],
    ["intent_key", "'another'"],
    ["action", "'VOID'"],
    ["connection_id", "'other'"],
    ["hash_parts", "'{}'::jsonb"],
    ["schema_version", "2"],
  ] as const) {
    it(`an edit of ${column}`, async () => {
      const id = await operationIn("PLANNED");
      await expect(
        plain.unsafe(`UPDATE signing_operation SET ${column} = ${value} WHERE operation_id = '${id}'`),
      ).rejects.toMatchObject({ code: "CS002" });
    });
  }

  it("a reference without CONFIRMED, and CONFIRMED without a reference", async () => {
    const id = await operationIn("UNKNOWN");
    await expect(
      plain`UPDATE signing_operation SET provider_ref = 'x' WHERE operation_id = ${id}`,
    ).rejects.toMatchObject({
      constraint_name: "operation_ref_exactly_when_confirmed",
    });
  });

  it("a lease outside IN_FLIGHT and RECONCILING", async () => {
    const id = await operationIn("UNKNOWN");
    await expect(
      plain`UPDATE signing_operation SET lease_owner = ${owner}, lease_expires_at = now() WHERE operation_id = ${id}`,
    ).rejects.toMatchObject({ constraint_name: "operation_owner_exactly_when_leased" });
  });

  it("a live row that nobody must look at, and a final one that somebody must", async () => {
    const live = await operationIn("UNKNOWN");
    const final = await operationIn("CONFIRMED");
    const rule = { constraint_name: "operation_live_rows_are_due" };
    await expect(plain`UPDATE signing_operation SET due_at = NULL WHERE operation_id = ${live}`).rejects.toMatchObject(
      rule,
    );
    await expect(
      plain`UPDATE signing_operation SET due_at = now() WHERE operation_id = ${final}`,
    ).rejects.toMatchObject(rule);
  });

  it("changed, deleted or truncated history, ledger rows and payloads", async () => {
    const id = await operationIn("PLANNED");
    for (const statement of [
      `UPDATE operation_event SET reason = 'x' WHERE operation_id = '${id}'`,
      `DELETE FROM operation_event WHERE operation_id = '${id}'`,
      "TRUNCATE operation_event",
      "TRUNCATE signing_operation CASCADE",
      `DELETE FROM signing_operation WHERE operation_id = '${id}'`,
      `DELETE FROM approved_payload WHERE operation_id = '${id}'`,
    ]) {
      await expect(plain.unsafe(statement), statement).rejects.toMatchObject({ code: "CS003" });
    }
    await expect(
      plain`UPDATE approved_payload SET payload = 'x'::bytea WHERE operation_id = ${id}`,
    ).rejects.toMatchObject({ code: "CS002" });
    await expect(
      plain`UPDATE approved_payload SET payload = NULL, request = NULL, erased_at = now() WHERE operation_id = ${id}`,
      "erasure before the end",
    ).rejects.toMatchObject({ code: "CS002" });
  });

  it("an attempt number that moves without a claim, and evidence that goes back", async () => {
    const id = await operationIn("UNKNOWN");
    await expect(plain`UPDATE signing_operation SET attempt_no = 0 WHERE operation_id = ${id}`).rejects.toMatchObject({
      code: "CS002",
    });
    await expect(plain`UPDATE signing_operation SET attempt_no = 7 WHERE operation_id = ${id}`).rejects.toMatchObject({
      code: "CS001",
    });
  });

  it("a row that does not begin PLANNED", async () => {
    await expect(
      plain`INSERT INTO signing_operation SELECT (jsonb_populate_record(o, jsonb_build_object('operation_id', gen_random_uuid(), 'intent_key', gen_random_uuid()::text))).*
        FROM signing_operation o WHERE o.state = 'CONFIRMED' LIMIT 1`,
    ).rejects.toMatchObject({ code: "CS001" });
  });
});

describe("claims", () => {
  it("let exactly one of fifty workers win", async () => {
    const id = await operationIn("PLANNED");
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const [outcome] = await claimForSubmit(test.ledger, [{ ...base(id), owner: randomUUID(), leaseMs: 60_000 }]);
        return outcome?.applied;
      }),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect((await getOperation(test.ledger, "acme", id))?.attemptNo).toBe(1);
  });

  it("take a batch in one statement and say per row whether it was taken", async () => {
    const planned = [await operationIn("PLANNED"), await operationIn("PLANNED")];
    const other = await operationIn("UNKNOWN");
    const ids = [planned[0] ?? "", other, planned[1] ?? "", randomUUID()];
    const outcomes = await claimForSubmit(
      test.ledger,
      ids.map((id) => ({ ...base(id), owner: randomUUID(), leaseMs: 1_000 })),
    );
    expect(outcomes.map((outcome) => (outcome.applied ? "taken" : outcome.found?.state))).toEqual([
      "taken",
      "UNKNOWN",
      "taken",
      undefined,
    ]);
  });

  it("never cross tenants", async () => {
    const id = await operationIn("PLANNED");
    const [outcome] = await claimForSubmit(test.ledger, [{ ...base(id), tenantId: "bravo", owner, leaseMs: 1_000 }]);
    expect(outcome).toEqual({ applied: false, found: undefined });
  });
});

describe("a worker whose row was rewritten meanwhile", () => {
  const late = [
    ["confirm", { providerRef: "sr_late", signingStatus: "SENT", shows: true }],
    ["refuse", {}],
    ["markUnknown", {}],
    ["payloadChanged", {}],
  ] as const;
  for (const [edge, more] of late) {
    it(`cannot overwrite it by ${edge}, even as the same process`, async () => {
      const id = await operationIn("IN_FLIGHT");
      await plain`UPDATE signing_operation SET lease_expires_at = now(), due_at = now() WHERE operation_id = ${id}`;
      await step("sweepSubmit", id);
      await step("claimForReconcile", id, { owner: randomUUID() });
      const held = await getOperation(test.ledger, "acme", id);
      const outcome = await transition(test.ledger, edge, { ...base(id), evidenceNo: 0, ...more });
      expect(outcome.applied).toBe(false);
      expect(await getOperation(test.ledger, "acme", id)).toEqual(held);
    });
  }

  const lateReconcilers = [
    "confirmFound",
    "absentSoPlanned",
    "declinedSoPlanned",
    "absentSoSuperseded",
    "absentAndRefused",
    "refusedByAll",
    "absentOnce",
    "inconclusive",
    "conflict",
  ] as const;
  for (const edge of lateReconcilers) {
    it(`cannot overwrite it by ${edge} with a lease that was taken from it`, async () => {
      const id = await operationIn("RECONCILING");
      await plain`UPDATE signing_operation SET lease_expires_at = now(), due_at = now() WHERE operation_id = ${id}`;
      await step("sweepReconcile", id);
      await step("claimForReconcile", id, { owner: randomUUID() });
      const held = await getOperation(test.ledger, "acme", id);
      expect((await attempt(edge, id)).applied).toBe(false);
      expect(await getOperation(test.ledger, "acme", id)).toEqual(held);
    });
  }
});

describe("absence", () => {
  async function reconciling(): Promise<{ id: string; evidenceNo: number; quietFrom: string }> {
    const id = await operationIn("RECONCILING");
    const row = await getOperation(test.ledger, "acme", id);
    return { id, evidenceNo: row?.evidenceNo ?? -1, quietFrom: row?.quietFrom ?? "" };
  }

  it("does not count where the look began before the window had passed", async () => {
    const { id, evidenceNo, quietFrom } = await reconciling();
    const input = { ...base(id), evidenceNo, beganAt: quietFrom, quiescenceMs: 1 };
    expect((await transition(test.ledger, "absentSoPlanned", input)).applied).toBe(false);
    expect((await transition(test.ledger, "absentOnce", input)).applied).toBe(false);
    expect((await transition(test.ledger, "absentSoPlanned", { ...input, quiescenceMs: 0 })).applied).toBe(true);
  });

  it("needs enough looks, far enough apart, on the same evidence", async () => {
    const { id, evidenceNo } = await reconciling();
    const first = { ...base(id), evidenceNo, beganAt: "2100-01-01T00:00:00Z", confirmations: 2, spacingMs: 15_000 };
    expect((await transition(test.ledger, "absentSoPlanned", first)).applied).toBe(false);
    expect((await transition(test.ledger, "absentOnce", first)).applied).toBe(true);
    await step("claimForReconcile", id);
    const tooSoon = { ...first, beganAt: "2100-01-01T00:00:14.999Z" };
    expect((await transition(test.ledger, "absentSoPlanned", tooSoon)).applied).toBe(false);
    const apart = { ...first, beganAt: "2100-01-01T00:00:15Z" };
    expect((await transition(test.ledger, "absentSoPlanned", { ...apart, evidenceNo: evidenceNo + 1 })).applied).toBe(
      false,
    );
    expect((await transition(test.ledger, "absentSoPlanned", apart)).applied).toBe(true);
    const history = await getHistory(test.ledger, "acme", id);
    expect(history.map((line) => line.seq)).toEqual(history.map((_, index) => index + 1));
  });

  it("sends again with the same key and counts the attempt", async () => {
    const { id, evidenceNo } = await reconciling();
    const before = await test.ledger.sql`SELECT provider_key FROM signing_operation WHERE operation_id = ${id}`;
    await transition(test.ledger, "absentSoPlanned", { ...base(id), evidenceNo, beganAt: future });
    await step("claimForSubmit", id);
    const after = await test.ledger
      .sql`SELECT provider_key, attempt_no FROM signing_operation WHERE operation_id = ${id}`;
    expect(after[0]).toMatchObject({ provider_key: before[0]?.provider_key, attempt_no: 2 });
  });

  it("is not proven by a refusal while an earlier attempt is open", async () => {
    const id = await operationIn("IN_FLIGHT");
    await plain`UPDATE signing_operation SET references_seen = 1 WHERE operation_id = ${id}`;
    expect((await transition(test.ledger, "refuse", { ...base(id), evidenceNo: 0 })).applied).toBe(false);
    expect((await transition(test.ledger, "markUnknown", base(id))).applied).toBe(true);
  });
});

it("send_before that has passed sends nothing: the proof is taken again", async () => {
  const id = await operationIn("RECONCILING");
  const row = await getOperation(test.ledger, "acme", id);
  await transition(test.ledger, "absentSoPlanned", {
    ...base(id),
    evidenceNo: row?.evidenceNo ?? 0,
    beganAt: future,
    sendBeforeMs: -1,
  });
  const [claim] = await claimForSubmit(test.ledger, [{ ...base(id), owner, leaseMs: 1_000 }]);
  expect(claim).toMatchObject({ applied: false, found: { state: "PLANNED", sendBeforePassed: true } });
  await step("sendBeforePassed", id);
  await step("claimForReconcile", id);
  const again = await findState(test.ledger.sql, "acme", id);
  expect(
    (await transition(test.ledger, "declinedSoPlanned", { ...base(id), evidenceNo: again?.evidenceNo ?? 0 })).applied,
  ).toBe(false);
});

it("one reference never belongs to two operations", async () => {
  const first = await operationIn("CONFIRMED");
  const second = await operationIn("IN_FLIGHT");
  await expect(
    confirm(test.ledger, [
      {
        ...base(second),
        owner,
        evidenceNo: 0,
        providerRef: `sr_${first}`,
        observation: { kind: "accepted" },
        signingStatus: "SENT",
      },
    ]),
  ).rejects.toMatchObject({ code: "CS004" });
  expect((await findState(test.ledger.sql, "acme", second))?.state).toBe("IN_FLIGHT");
});

it("a refused VOID that matters goes to a person, with an owned ticket; one that does not is final", async () => {
  const target = await operationIn("CONFIRMED");
  const idle = await planVoid(test, target);
  await step("claimForSubmit", idle);
  await step("refuse", idle);
  const replaced = await operationIn("CONFIRMED");
  await planSend(test, { supersedes: replaced });
  const [row] = await test.ledger.sql<{ operation_id: string }[]>`
    SELECT operation_id FROM signing_operation WHERE target_operation_id = ${replaced} AND action = 'VOID'`;
  const matters = row?.operation_id ?? "";
  await step("claimForSubmit", matters);
  expect((await attempt("refuse", matters)).applied).toBe(false);
  await step("voidRefused", matters);
  const [ticket] = await test.ledger.sql`SELECT owner FROM ticket WHERE subject_id = ${matters}`;
  expect(ticket?.owner).toBe("contracts-team");
});

it("not_before turns early jobs away", async () => {
  const id = await operationIn("IN_FLIGHT");
  await markUnknown(test.ledger, {
    ...base(id),
    owner,
    observation: { kind: "declined" },
    dueMs: 60_000,
    closes: true,
  });
  const outcome = await claimForReconcile(test.ledger, { ...base(id), owner, leaseMs: 1_000 });
  expect(outcome).toMatchObject({ applied: false, found: { state: "UNKNOWN" } });
  expect(outcome.applied ? 0 : outcome.found?.waitMs).toBeGreaterThan(50_000);
});
