import { randomUUID } from "node:crypto";
import {
  claimForReconcile,
  claimForSubmit,
  finalStates,
  getOperation,
  review,
  type State,
  states,
} from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fastWindows, Scene } from "./harness.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
});
afterAll(async () => {
  await scene.stop();
});

const lease = (operationId: string) => ({
  tenantId: "acme",
  operationId,
  owner: randomUUID(),
  leaseMs: 400,
  actor: "test",
  reason: "test",
});

/** Brings a new SEND into a state, as a real day would. */
const into: Record<State, (id: string) => Promise<void>> = {
  PLANNED: async () => undefined,
  IN_FLIGHT: async (id) => {
    // Its worker dies before the first byte.
    await claimForSubmit(scene.ledger, [lease(id)]);
  },
  UNKNOWN: async (id) => {
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.submitOnce(id);
  },
  RECONCILING: async (id) => {
    await into.UNKNOWN(id);
    await claimForReconcile(scene.ledger, lease(id));
  },
  NEEDS_REVIEW: async (id) => {
    scene.simulator.script({ kind: "lost-response", operationId: id });
    await scene.submitOnce(id);
    await scene.makeAgain(id);
    await scene.settle(id);
  },
  CONFIRMED: async (id) => {
    await scene.settle(id);
  },
  TERMINAL_FAILED: async (id) => {
    scene.simulator.script({ kind: "answer", status: 422, code: "invalid_signers", operationId: id });
    await scene.settle(id);
  },
  SUPERSEDED: async (id) => {
    await scene.planVoid(id);
  },
};

async function sendIn(state: State): Promise<string> {
  const { operationId } = await scene.planSend();
  await into[state](operationId);
  expect((await scene.operation(operationId)).state).toBe(state);
  return operationId;
}

const final: readonly string[] = finalStates;

/** Everything due is run until these are final; an earlier one in review is abandoned by a person. */
async function runToTheEnd(ids: readonly string[]): Promise<void> {
  await scene.drive(
    async () => {
      const operations = await Promise.all(ids.map((id) => getOperation(scene.ledger, "acme", id)));
      for (const operation of operations) {
        if (operation?.state !== "NEEDS_REVIEW" || operation.action !== "SEND") continue;
        await review(scene.ledger, {
          tenantId: "acme",
          operationId: operation.operationId,
          evidenceNo: operation.evidenceNo,
          who: "u-17",
          why: "replaced",
          basis: "person",
          decision: { kind: "abandon" },
          quiescenceMs: fastWindows.quiescenceMs,
          voidRequest: scene.voidRequest(),
        }).catch((error: unknown) => {
          if (!(error instanceof Error && "code" in error && error.code === "too-early")) throw error;
        });
      }
      return operations.every((operation) => operation !== undefined && final.includes(operation.state));
    },
    { timeoutMs: 20_000 },
  );
}

const live = (id: string): number => scene.requests(id).filter(({ status }) => status !== "withdrawn").length;

const endsAs: Record<State, State> = {
  PLANNED: "SUPERSEDED",
  IN_FLIGHT: "SUPERSEDED",
  UNKNOWN: "CONFIRMED",
  RECONCILING: "CONFIRMED",
  NEEDS_REVIEW: "SUPERSEDED",
  CONFIRMED: "CONFIRMED",
  TERMINAL_FAILED: "TERMINAL_FAILED",
  SUPERSEDED: "SUPERSEDED",
};

describe.each(["void-first", "send-first"] as const)("an amendment, %s, while the earlier one is", (mode) => {
  it.each(states)("%s: in the end only the amendment is alive, and each was sent at most once", async (state) => {
    const earlier = await sendIn(state);
    const { operationId: amendment } = await scene.planSend({ supersedes: earlier, mode });
    await runToTheEnd([earlier, amendment]);
    const voids = await scene.ledger.sql<{ operation_id: string }[]>`
      SELECT operation_id FROM signing_operation WHERE target_operation_id = ${earlier} AND action = 'VOID'`;
    await runToTheEnd(voids.map((row) => row.operation_id));
    expect((await scene.operation(earlier)).state).toBe(endsAs[state]);
    expect((await scene.operation(amendment)).state).toBe("CONFIRMED");
    expect([live(earlier), live(amendment)]).toEqual([0, 1]);
    expect(scene.books(amendment)).toMatchObject({ requests: 1, mails: 1, arrivals: 1 });
    expect(scene.books(earlier).arrivals).toBeLessThanOrEqual(state === "NEEDS_REVIEW" ? 2 : 1);
    await expect(scene.planSend({ supersedes: earlier, mode })).rejects.toMatchObject({
      code: "already-superseded",
      detail: { successor: amendment },
    });
  });
});

it.each(["void-first", "send-first"] as const)(
  "a chain of three amendments within a second, %s: only the last is alive",
  async (mode) => {
    const { operationId: first } = await scene.planSend();
    scene.simulator.script({ kind: "lost-response", operationId: first });
    await scene.submitOnce(first);
    const chain = [first];
    for (let index = 0; index < 3; index += 1) {
      const { operationId } = await scene.planSend({ supersedes: chain.at(-1) ?? "", mode });
      chain.push(operationId);
    }
    await runToTheEnd(chain);
    const voids = await scene.ledger.sql<{ operation_id: string }[]>`
    SELECT operation_id FROM signing_operation WHERE action = 'VOID' AND target_operation_id IN (
      SELECT value::uuid FROM jsonb_array_elements_text(${JSON.stringify(chain)}::text::jsonb))`;
    await runToTheEnd(voids.map((row) => row.operation_id));
    expect(chain.map(live)).toEqual([0, 0, 0, 1]);
    expect(chain.slice(1, 3).map((id) => scene.books(id).arrivals)).toEqual([0, 0]);
  },
);

describe("a VOID of a SEND that is", () => {
  it("PLANNED: nothing was sent, both end SUPERSEDED, and no call is made", async () => {
    const send = await sendIn("PLANNED");
    const voidId = await scene.planVoid(send);
    expect([(await scene.operation(send)).state, (await scene.operation(voidId)).state]).toEqual([
      "SUPERSEDED",
      "SUPERSEDED",
    ]);
    expect(scene.books(send)).toMatchObject({ arrivals: 0, withdrawals: 0 });
  });

  it.each(["IN_FLIGHT", "UNKNOWN", "RECONCILING"] as const)(
    "%s: waits for the truth, then acts on it",
    async (state) => {
      const send = await sendIn(state);
      const voidId = await scene.planVoid(send);
      expect((await scene.operation(voidId)).openDependencies).toBe(1);
      await runToTheEnd([send, voidId]);
      // One that never arrived is sent first and voided then: a VOID is no amendment.
      expect([(await scene.operation(send)).state, (await scene.operation(voidId)).state]).toEqual([
        "CONFIRMED",
        "CONFIRMED",
      ]);
      expect([live(send), scene.books(send).withdrawals]).toEqual([0, 1]);
    },
  );

  it("TERMINAL_FAILED: there is nothing to void", async () => {
    const send = await sendIn("TERMINAL_FAILED");
    const voidId = await scene.planVoid(send);
    expect(await scene.operation(voidId)).toMatchObject({ state: "SUPERSEDED", reason: "target-never-existed" });
  });
});

describe.each(["RESEND", "FINALIZE"] as const)("%s of a SEND that is not confirmed", (action) => {
  it("waits for it, and is released with its reference", async () => {
    const send = await sendIn("UNKNOWN");
    const id = await scene.planOn(action, send);
    expect((await scene.operation(id)).openDependencies).toBe(1);
    await scene.settle(send);
    if (action === "FINALIZE") scene.simulator.advance(scene.requests(send)[0]?.id ?? "", "completed");
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    if (action === "FINALIZE") expect((await scene.operation(id)).archivedSha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it("ends with it where it never came to be", async () => {
    const send = await sendIn("TERMINAL_FAILED");
    expect((await scene.operation(await scene.planOn(action, send))).state).toBe("SUPERSEDED");
    const planned = await sendIn("PLANNED");
    const waiting = await scene.planOn(action, planned);
    await scene.planVoid(planned);
    expect((await scene.operation(waiting)).state).toBe("SUPERSEDED");
    expect(scene.books(planned).arrivals).toBe(0);
  });
});
