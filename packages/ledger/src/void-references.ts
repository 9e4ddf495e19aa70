import { newId } from "@countersign/runtime";
import type { AnySql, Ledger } from "./database.js";
import { payloadHash } from "./hash.js";
import { insertPlanned, type PlannedOperation, type VoidRequest } from "./plan.js";
import { addDependency, current } from "./plan-related.js";
import { isFinal, type State } from "./state.js";

/** The operation that a decision is about, its row locked by the deciding transaction. */
export interface Decided {
  tenantId: string;
  operationId: string;
  connectionId: string;
  supersededBy: string | null;
}

export interface KnownReference {
  providerRef: string;
  role: string;
  /** What the provider last said of it; null where it has said nothing. */
  status: string | null;
}

/** Every reference of an operation with what the provider says of it, the oldest first. */
export async function knownReferences(sql: AnySql, tenantId: string, operationId: string): Promise<KnownReference[]> {
  return await sql<KnownReference[]>`
    SELECT r.provider_ref AS "providerRef", r.role, s.status FROM operation_reference r
    LEFT JOIN contract_signing s USING (tenant_id, connection_id, provider_ref)
    WHERE r.tenant_id = ${tenantId} AND r.operation_id = ${operationId} ORDER BY r.seen_at, r.provider_ref`;
}

/** Over at the provider already: there is nothing to void, and what is completed is never voided. */
export const isOver = ({ status }: KnownReference): boolean =>
  status === "COMPLETED" ||
  status === "VOIDED" ||
  status === "DECLINED" ||
  status === "EXPIRED" ||
  status === "DISCARDED";

/** Nobody has been mailed for it: it can't be kept as sent. */
export const isUnsent = ({ status, role }: KnownReference): boolean =>
  status === "STAGED" || (role === "draft" && status === null);

/** A ledgered VOID of its own for each reference, unless one for it is live or done already. */
export async function planVoidsOf(
  ledger: Ledger,
  sql: AnySql,
  decided: Decided,
  references: readonly KnownReference[],
  options: { voidRequest: VoidRequest; waitForSuccessor: boolean },
): Promise<PlannedOperation[]> {
  const planned: PlannedOperation[] = [];
  for (const reference of references) {
    if (isOver(reference) || (await isBeingVoided(sql, decided, reference.providerRef))) continue;
    planned.push(await planVoidOfReference(ledger, sql, decided, reference.providerRef, options));
  }
  return planned;
}

/** Is a VOID of this reference live, or done? */
export async function isBeingVoided(sql: AnySql, decided: Decided, providerRef: string): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM signing_operation WHERE tenant_id = ${decided.tenantId} AND connection_id = ${decided.connectionId}
      AND target_operation_id = ${decided.operationId} AND action = 'VOID' AND target_ref = ${providerRef}
      AND state NOT IN ('TERMINAL_FAILED','SUPERSEDED')`;
  return rows.length > 0;
}

async function planVoidOfReference(
  ledger: Ledger,
  sql: AnySql,
  decided: Decided,
  providerRef: string,
  { voidRequest, waitForSuccessor }: { voidRequest: VoidRequest; waitForSuccessor: boolean },
): Promise<PlannedOperation> {
  const { tenantId, operationId: targetId, connectionId } = decided;
  const voidId = newId();
  const approved = { action: "VOID", connectionId, payload: { schemaVersion: 1 }, target: { providerRef } } as const;
  // The target's row is locked, so no other decision takes the same number.
  const [taken] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM signing_operation
    WHERE tenant_id = ${tenantId} AND target_operation_id = ${targetId} AND intent_key LIKE ${`cs:void:${targetId}:%`}`;
  const inserted = await insertPlanned(ledger, sql, {
    plan: {
      tenantId,
      operationId: voidId,
      intentKey: `cs:void:${targetId}:${(taken?.count ?? 0) + 1}`,
      approved,
      ...voidRequest({ tenantId, operationId: voidId }),
    },
    hash: payloadHash(approved),
    openDependencies: 0,
    targetOperationId: targetId,
    targetRef: providerRef,
    actor: "ledger",
  });
  if (inserted === undefined) throw new Error("the intent key of a VOID of ours is taken");
  if (decided.supersededBy !== null) await tieToSuccessor(sql, decided, voidId, waitForSuccessor);
  return await current(sql, tenantId, voidId);
}

/** A void-first successor waits for it; a send-first one is waited for, where nothing else would be left alive. */
async function tieToSuccessor(sql: AnySql, decided: Decided, voidId: string, waitForSuccessor: boolean): Promise<void> {
  const { tenantId, supersededBy } = decided;
  await sql`
    UPDATE signing_operation SET target_superseded = true WHERE tenant_id = ${tenantId} AND operation_id = ${voidId}`;
  const [successor] = await sql<
    { operation_id: string; state: State; supersede_mode: string; open_dependencies: number }[]
  >`
    SELECT operation_id, state, supersede_mode, open_dependencies FROM signing_operation
    WHERE tenant_id = ${tenantId} AND operation_id = ${supersededBy} FOR UPDATE`;
  if (successor === undefined) return;
  if (successor.supersede_mode === "void-first") {
    if (successor.state !== "PLANNED" || successor.open_dependencies === 0) return;
    await addDependency(sql, tenantId, successor.operation_id, voidId, "void-first");
    await sql`
      UPDATE signing_operation SET open_dependencies = open_dependencies + 1, due_at = NULL
      WHERE tenant_id = ${tenantId} AND operation_id = ${successor.operation_id}`;
  } else if (waitForSuccessor && !isFinal(successor.state)) {
    await sql`
      UPDATE signing_operation SET open_dependencies = open_dependencies + 1, due_at = NULL
      WHERE tenant_id = ${tenantId} AND operation_id = ${voidId}`;
    await addDependency(sql, tenantId, voidId, successor.operation_id, "send-first");
  }
}
