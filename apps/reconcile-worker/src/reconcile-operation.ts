import { randomUUID } from "node:crypto";
import { claimForReconcile, postpone, type TransitionRow } from "@countersign/ledger";
import type { LookupResult } from "@countersign/provider";
import { inSpan, type SpanStart } from "@countersign/runtime";
import { claimCompanions, listForMany } from "./list-for-many.js";
import { claimOf, type ReconcileDeps } from "./reconcile-deps.js";
import { Pass, type PassResult } from "./reconcile-pass.js";

export type ReconcileOutcome =
  | { kind: "not-claimed"; found: string }
  | { kind: "decided"; verdict: string; state: string };

/** A row that this process has claimed. */
export interface Claimed {
  row: TransitionRow;
  owner: string;
}

/** Passes of one list that write their verdicts side by side. */
const sideBySide = 8;

/**
 * One reconcile pass: claim, ask, decide, write the verdict under the owner token and the evidence it was made on. Where
 * the provider lists many requests at once, rows that wait for the same answer are settled with it. It only reads at the
 * provider; whatever is to be sent again is sent by a submit worker after its own claim.
 */
export async function reconcileOperation(
  deps: ReconcileDeps,
  tenantId: string,
  operationId: string,
): Promise<ReconcileOutcome> {
  const owner = randomUUID();
  const claim = await claimForReconcile(deps.ledger, claimOf(deps, tenantId, operationId, owner));
  if (!claim.applied) {
    const { found } = claim;
    if (found?.state === "UNKNOWN") {
      const waitMs = Math.max(found.waitMs, found.circuitOpen ? deps.circuit.probeMs * (1 + Math.random()) : 0);
      if (waitMs > 0) await postpone(deps.ledger, { tenantId, operationId, state: "UNKNOWN", waitMs });
    }
    return { kind: "not-claimed", found: found?.state ?? "missing" };
  }
  reportClaim(deps, claim.row);
  const first = { row: claim.row, owner };
  const { verdict, state } = await settle(deps, first);
  return { kind: "decided", verdict: verdict.kind, state };
}

async function settle(deps: ReconcileDeps, first: Claimed): Promise<PassResult> {
  const { row } = first;
  const connection = await deps.connection(row.tenant_id, row.connection_id);
  const provider = deps.provider(connection.provider);
  if (provider === undefined) throw new Error(`no adapter for provider ${connection.provider}`);
  const run = async (claimed: Claimed, listed?: LookupResult): Promise<PassResult> => {
    const started = performance.now();
    const result = await inSpan(spanOf(claimed.row), async (span) => {
      const ended = await new Pass(deps, claimed.row, claimed.owner, connection, provider).run(listed);
      span.note({ verdict: ended.verdict.kind, reason: ended.verdict.reason, state: ended.state });
      return ended;
    });
    report(deps, claimed.row, result, performance.now() - started);
    return result;
  };
  const companions = await claimCompanions(deps, first, connection, provider);
  for (const companion of companions) reportClaim(deps, companion.row);
  if (companions.length === 0) return await run(first);
  const listed = await listForMany(deps, [first, ...companions], connection, provider);
  for (let index = 0; index < companions.length; index += sideBySide) {
    const some = companions.slice(index, index + sideBySide);
    // One row's failure is its own: its lease ends, and the due loop finds it.
    const ends = await Promise.allSettled(some.map((claimed) => run(claimed, listed.get(claimed.row.operation_id))));
    for (const [at, end] of ends.entries()) {
      if (end.status === "rejected") {
        deps.logger.error(
          { err: end.reason, tenant: row.tenant_id, operation: some[at]?.row.operation_id ?? "" },
          "pass failed: its lease will end",
        );
      }
    }
  }
  return await run(first, listed.get(row.operation_id));
}

/** Whose line or span it is. */
const factsOf = (row: TransitionRow) => ({
  tenant: row.tenant_id,
  operation: row.operation_id,
  attempt: row.attempt_no,
  action: row.action,
  connection: row.connection_id,
});

const spanOf = (row: TransitionRow): SpanStart => ({ name: "reconcile", of: row.operation_id, facts: factsOf(row) });

function reportClaim(deps: ReconcileDeps, row: TransitionRow): void {
  deps.logger.info({ ...factsOf(row), from: "UNKNOWN", state: row.state }, "claimed");
}

function report(deps: ReconcileDeps, row: TransitionRow, { verdict, state }: PassResult, ms: number): void {
  deps.decided?.({ action: row.action, verdict: verdict.kind, state });
  deps.logger.info(
    {
      ...factsOf(row),
      verdict: verdict.kind,
      reason: verdict.reason,
      from: "RECONCILING",
      state,
      ms: Math.round(ms),
    },
    "reconciled",
  );
}
