import type { AnySql } from "./database.js";
import type { PlannedOperation } from "./plan.js";
import { current } from "./plan-related.js";
import type { Decided, KnownReference } from "./void-references.js";

/**
 * The VOIDs that waited for an abandoned SEND take its references, one each; further waiting ones repeat the last, so
 * that none is told that its target never existed. Whatever references are left get VOIDs of their own.
 */
export async function releaseWaitingVoids(
  sql: AnySql,
  decided: Decided,
  references: readonly KnownReference[],
): Promise<{ voids: PlannedOperation[]; refs: Set<string> }> {
  const refs = new Set<string>();
  const voids: PlannedOperation[] = [];
  const { tenantId, operationId } = decided;
  if (references.length === 0) return { voids, refs };
  const waiting = await sql<{ operation_id: string }[]>`
    SELECT d.operation_id FROM operation_dependency d
    JOIN signing_operation w ON w.tenant_id = d.tenant_id AND w.operation_id = d.operation_id
    WHERE d.tenant_id = ${tenantId} AND d.depends_on_operation_id = ${operationId} AND d.relation = 'target' AND d.resolved_at IS NULL
      AND w.action = 'VOID' AND w.state = 'PLANNED'
    ORDER BY d.operation_id FOR UPDATE OF d, w`;
  for (const [index, { operation_id: voidId }] of waiting.entries()) {
    const ref = references[Math.min(index, references.length - 1)]?.providerRef;
    if (ref === undefined) break;
    await bindAndRelease(sql, decided, voidId, ref);
    refs.add(ref);
    voids.push(await current(sql, tenantId, voidId));
  }
  return { voids, refs };
}

async function bindAndRelease(sql: AnySql, decided: Decided, voidId: string, ref: string): Promise<void> {
  const { tenantId, operationId } = decided;
  await sql`
    UPDATE operation_dependency SET resolved_at = now()
    WHERE tenant_id = ${tenantId} AND operation_id = ${voidId} AND depends_on_operation_id = ${operationId}`;
  await sql`
    WITH u AS (
      UPDATE signing_operation SET target_ref = ${ref}, open_dependencies = open_dependencies - 1, event_no = event_no + 1, dispatches = 0,
        due_at = CASE WHEN open_dependencies = 1 THEN now() END, updated_at = now()
      WHERE tenant_id = ${tenantId} AND operation_id = ${voidId} AND state = 'PLANNED'
      RETURNING tenant_id, operation_id, event_no, state, attempt_no)
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'released', state, state, 'target-abandoned-with-references', 'ledger', attempt_no,
      jsonb_build_object('waitedFor', ${operationId}::text) FROM u`;
}
