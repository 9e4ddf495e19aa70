import { type Ledger, type PlanOutcome, sent } from "@countersign/ledger";
import type { Result } from "../define.js";
import { exitCodes, RefusedError } from "../errors.js";
import { waitForResolution } from "../wait-for.js";

/** What `send` and `void` print of a plan; with `waitMs` they wait for its resolution first. */
export async function planResult(
  ledger: Ledger,
  tenantId: string,
  outcome: PlanOutcome,
  waitMs: number | undefined,
): Promise<Result> {
  if (outcome.kind === "conflict") {
    const parts = outcome.differs.join(", ");
    throw new RefusedError(
      "payload-conflict",
      `this intent is operation ${outcome.operationId} with another payload (differs in: ${parts}); use a new intent key, or --supersedes`,
    );
  }
  const { operationId, state } = outcome.operation;
  const duplicate = outcome.kind === "existing";
  const also = outcome.kind === "created" ? outcome.alsoPlanned.map((each) => each.operationId) : [];
  const value = { operationId, state, duplicate, alsoPlanned: also };
  const lines = [duplicate ? `${operationId} exists already (${state}).` : `${operationId} is planned.`];
  for (const id of also) lines.push(`${id} is planned with it: the void of what it replaces.`);
  if (waitMs === undefined) return { value, text: lines.join("\n") };
  const operation = await waitForResolution(ledger, tenantId, operationId, waitMs);
  const verdict = sent(operation);
  lines.push(`State ${operation.state}; sent: ${verdict}.`);
  return {
    value: { ...value, state: operation.state, sent: verdict },
    text: lines.join("\n"),
    exitCode: operation.state === "CONFIRMED" ? exitCodes.done : exitCodes.refused,
  };
}
