import { readFile } from "node:fs/promises";
import { type Policy, recordEvidence, writePolicy } from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scene } from "./harness.js";
import { type Cell, matrix, matrixTable } from "./matrix.js";

interface Ended {
  state: string;
  reason: string;
  calls: number;
  requests: number;
  mails: number;
  attempts: number;
  /** Returns to PLANNED without evidence on record: must stay 0. */
  unproven: number;
}

let scene: Scene;
const ends = new Map<Cell, Ended | Error>();
const sideBySide = 12;

beforeAll(async () => {
  scene = await Scene.start();
  const queue = [...matrix.entries()];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, cell] = next;
      ends.set(cell, await run(cell, `c${index}`).catch((error: unknown) => error as Error));
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, worker));
}, 180_000);
afterAll(async () => {
  await scene.stop();
});

const neverEnds = (cell: Cell): boolean => cell.state === "UNKNOWN" || cell.state === "PLANNED";

async function run(cell: Cell, connectionId: string): Promise<Ended> {
  await scene.connect(connectionId, {
    provider: cell.provider,
    verified: cell.evidence === "lookup" && cell.provider === "wesign",
    metadataLookup: cell.evidence !== "lookup switched off",
  });
  if (cell.policy !== undefined) {
    const action = cell.action.startsWith("SEND") ? "SEND" : cell.action;
    const written = { policy: cell.policy, action, connectionId, by: "legal-1", reason: "accepted in writing" };
    await writePolicy(scene.ledger, { tenantId: "acme", ...written });
  }
  const { sendId, operationId } = await begin(cell, connectionId);
  const before = calls(sendId, operationId === sendId);
  const timeoutMs = neverEnds(cell) ? 2_500 : 20_000;
  if (cell.story === "target-completed-later") {
    await scene.settle(operationId, { timeoutMs: 500 });
    advance(sendId, "completed");
  }
  await settleWithStory(cell, operationId, timeoutMs);
  const operation = await scene.operation(operationId);
  const history = await scene.history(operationId);
  const last = history.filter((line) => line.kind === "transition").at(-1);
  const books = scene.books(sendId);
  return {
    state: operation.state === "RECONCILING" ? "UNKNOWN" : operation.state,
    reason: last?.reason === "looking" ? (history.at(-2)?.reason ?? "") : (last?.reason ?? ""),
    calls: calls(sendId, operationId === sendId) - before,
    requests: books.requests,
    mails: books.mails,
    attempts: operation.attemptNo,
    unproven: history.filter(
      (line) => line.toState === "PLANNED" && line.fromState === "RECONCILING" && line.evidence === null,
    ).length,
  };
}

/** Plans the cell's operation and scripts its fault; for an action on a target, the target is sent first. */
async function begin(cell: Cell, connectionId: string): Promise<{ sendId: string; operationId: string }> {
  const script = (operationId: string) => {
    for (const fault of cell.script ?? []) scene.simulator.script({ ...fault, operationId });
    if (cell.evidence === "lookup fails") {
      for (const endpoint of ["list", "get"] as const)
        scene.simulator.script({ kind: "lookup-fail", endpoint, operationId, times: 10_000 });
    }
  };
  if (cell.action.startsWith("SEND")) {
    const { operationId } = await scene.planSend({ connectionId, payload: payloadOf(cell) });
    script(operationId);
    return { sendId: operationId, operationId };
  }
  const stageOnly = cell.story === "target-staged";
  const send = await scene.planSend({
    connectionId,
    payload: stageOnly
      ? scene.payload({ documents: [], template: { id: "tpl_contract" }, stageOnly: true })
      : scene.payload(),
  });
  const sent = await scene.settle(send.operationId);
  if (sent.state !== "CONFIRMED") throw new Error(`the target ended ${sent.state}`);
  const status = /^target-(completed|declined|expired|withdrawn)$/.exec(cell.story ?? "")?.[1];
  if (status === "completed" || status === "declined" || status === "expired" || status === "withdrawn")
    advance(send.operationId, status);
  script(send.operationId);
  const action =
    cell.action === "VOID" || cell.action === "RESEND" || cell.action === "FINALIZE" ? cell.action : "VOID";
  return { sendId: send.operationId, operationId: await scene.planOn(action, send.operationId, { connectionId }) };
}

function payloadOf(cell: Cell) {
  if (cell.action === "SEND") return scene.payload();
  return scene.payload({
    documents: [],
    template: { id: cell.action === "SEND staged" ? "tpl_reviewed" : "tpl_contract" },
    ...(cell.action === "SEND stage only" ? { stageOnly: true } : {}),
  });
}

function advance(operationId: string, status: "completed" | "declined" | "expired" | "withdrawn"): void {
  const [request] = scene.requests(operationId);
  if (request !== undefined) scene.simulator.advance(request.id, status);
}

async function settleWithStory(cell: Cell, operationId: string, timeoutMs: number): Promise<void> {
  if (cell.story === "made-twice" || cell.story === "webhook-before-look") {
    await scene.submitOnce(operationId);
    const [request] = scene.requests(operationId);
    if (request === undefined) throw new Error("nothing was made");
    if (cell.story === "made-twice") await scene.makeAgain(operationId);
    else await recordWebhook(operationId, request.id);
  }
  await scene.settle(operationId, { timeoutMs });
  if (cell.policy === undefined) return;
  const until = performance.now() + 5_000;
  while (performance.now() < until && (await scene.operation(operationId)).state === "NEEDS_REVIEW") {
    await scene.work("policy", operationId);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const recordWebhook = (operationId: string, providerRef: string) =>
  recordEvidence(scene.ledger.sql, {
    tenantId: "acme",
    operationId,
    providerRef,
    source: "webhook",
    actor: "webhook-apply",
    reason: "event-with-our-metadata",
  });

const changing = ["send", "instantiate", "confirm", "discard", "withdraw", "remind"] as const;

function calls(sendId: string, own: boolean): number {
  const made = scene.calls(sendId);
  const all = changing.reduce((sum, endpoint) => sum + (made[endpoint] ?? 0), 0);
  return own ? all : all - (made.send ?? 0) - (made.instantiate ?? 0) - (made.confirm ?? 0);
}

describe("action × fault × evidence ends in the documented state with the documented number of calls", () => {
  it.each(
    matrix.map(
      (cell) =>
        [
          `${cell.provider} ${cell.action}, ${cell.fault}, ${cell.evidence}${cell.policy === undefined ? "" : `, ${cell.policy}`}`,
          cell,
        ] as const,
    ),
  )("%s", (_name, cell) => {
    const end = ends.get(cell);
    if (end instanceof Error || end === undefined) throw end ?? new Error("never ran");
    expect({ state: end.state, reason: end.reason, calls: end.calls }).toEqual({
      state: cell.state,
      reason: cell.reason,
      calls: cell.calls,
    });
    if (cell.requests !== undefined) expect(end.requests).toBe(cell.requests);
    if (cell.mails !== undefined) expect(end.mails).toBe(cell.mails);
    expect(end.unproven).toBe(0);
  });
});

it("docs/reconciliation.md shows this very table", async () => {
  const doc = await readFile(new URL("../../docs/reconciliation.md", import.meta.url), "utf8");
  expect(doc).toContain(matrixTable());
});

it("what a policy decided is shown as the policy's, and as not proven", async () => {
  const policies = await scene.ledger.sql<
    Pick<Policy, "policyId">[]
  >`SELECT policy_id AS "policyId" FROM tenant_policy`;
  const lines = await scene.ledger.sql<{ actor: string }[]>`
    SELECT actor FROM operation_event WHERE reason = 'kept-by-review'`;
  expect(lines.length).toBeGreaterThan(0);
  for (const { actor } of lines) expect(policies.map(({ policyId }) => `policy:${policyId}`)).toContain(actor);
});
