import { newId } from "@countersign/runtime";
import type { AnySql, Ledger } from "./database.js";
import { PlanRefusedError } from "./errors.js";
import { payloadHash } from "./hash.js";
import { insertPlanned, type PlannedOperation, type VoidRequest } from "./plan.js";
import { addDependency, current } from "./plan-related.js";
import { transitionInside } from "./transitions.js";

/** `release`: they go ahead though the VOID did not; `retire`: they end with it; `retry`: they wait for a new VOID. */
export type DependantsDecision = "release" | "retire" | "retry";

/** Reason codes that `relations.ts` reads: only a reviewed VOID releases those that waited for it. */
const reasons: Record<DependantsDecision | "none", string> = {
  release: "reviewed",
  retire: "retired-by-review",
  retry: "retried-by-review",
  none: "abandoned-by-review",
};

/** What becomes of the operations that wait for one that is given up. Needed wherever some do. */
export async function decideOnDependants(
  ledger: Ledger,
  sql: AnySql,
  given: {
    tenantId: string;
    operationId: string;
    action: "VOID" | "RESEND" | "FINALIZE";
    connectionId: string;
    targetOperationId: string | null;
    targetRef: string | null;
    decision?: DependantsDecision;
    voidRequest: VoidRequest;
  },
): Promise<{ reason: string; planned: PlannedOperation[] }> {
  const waiting = await sql<{ operation_id: string; relation: string }[]>`
    SELECT d.operation_id, d.relation FROM operation_dependency d
    JOIN signing_operation w ON w.tenant_id = d.tenant_id AND w.operation_id = d.operation_id
    WHERE d.tenant_id = ${given.tenantId} AND d.depends_on_operation_id = ${given.operationId} AND d.resolved_at IS NULL AND w.finished_at IS NULL
    ORDER BY d.operation_id FOR UPDATE OF d, w`;
  if (waiting.length > 0 && given.decision === undefined) {
    throw new PlanRefusedError("dependants-undecided", "operations wait for this one: say release, retire or retry", {
      waiting: waiting.map((each) => each.operation_id),
    });
  }
  if (given.decision === "retry" && given.action !== "VOID") {
    throw new PlanRefusedError("retry-unsuitable", "only a VOID is tried again by a review");
  }
  const planned: PlannedOperation[] = [];
  if (given.decision === "retire") {
    for (const { operation_id: operationId } of waiting) {
      await transitionInside(sql, "supersedePlanned", {
        tenantId: given.tenantId,
        operationId,
        actor: "ledger",
        reason: "retired-by-review",
      });
    }
  }
  if (given.decision === "retry") planned.push(await retryVoid(ledger, sql, given, waiting));
  return { reason: reasons[given.decision ?? "none"], planned };
}

async function retryVoid(
  ledger: Ledger,
  sql: AnySql,
  given: Parameters<typeof decideOnDependants>[2],
  waiting: readonly { operation_id: string; relation: string }[],
): Promise<PlannedOperation> {
  const { tenantId, targetRef, connectionId, targetOperationId } = given;
  if (targetRef === null) throw new PlanRefusedError("retry-unsuitable", "this VOID never had a reference to act on");
  const voidId = newId();
  const approved = {
    action: "VOID",
    connectionId,
    payload: { schemaVersion: 1 },
    target: { providerRef: targetRef },
  } as const;
  const inserted = await insertPlanned(ledger, sql, {
    plan: {
      tenantId,
      operationId: voidId,
      intentKey: `cs:void:${targetOperationId ?? given.operationId}:retry:${voidId}`,
      approved,
      ...given.voidRequest({ tenantId, operationId: voidId }),
    },
    hash: payloadHash(approved),
    openDependencies: 0,
    ...(targetOperationId === null ? {} : { targetOperationId }),
    targetRef,
    actor: "ledger",
  });
  if (inserted === undefined) throw new Error("the intent key of a VOID of ours is taken");
  await sql`
    UPDATE signing_operation n SET target_superseded = o.target_superseded FROM signing_operation o
    WHERE n.tenant_id = ${tenantId} AND n.operation_id = ${voidId} AND o.tenant_id = n.tenant_id AND o.operation_id = ${given.operationId}`;
  for (const { operation_id: waiter } of waiting) {
    await addDependency(sql, tenantId, waiter, voidId, "void-first");
    await sql`
      UPDATE operation_dependency SET resolved_at = now()
      WHERE tenant_id = ${tenantId} AND operation_id = ${waiter} AND depends_on_operation_id = ${given.operationId}`;
  }
  return await current(sql, tenantId, voidId);
}
