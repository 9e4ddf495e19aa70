import type { Ledger } from "./database.js";

/** An operation that has to do with another one. */
export interface RelatedOperation {
  operationId: string;
  action: string;
  state: string;
  /** `acts on it`, `is acted on`, `replaces it`, `replaced by it`. */
  relation: string;
}

/** What acts on an operation, what it acts on, what replaces it and what it replaces; 100 at most. */
export async function getRelated(ledger: Ledger, tenantId: string, operationId: string): Promise<RelatedOperation[]> {
  return await ledger.sql<RelatedOperation[]>`
    WITH me AS (
      SELECT supersedes, superseded_by, target_operation_id FROM signing_operation
      WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}),
    ids AS (
      SELECT target_operation_id AS id, 'is acted on' AS relation FROM me
      UNION ALL SELECT supersedes, 'replaced by it' FROM me
      UNION ALL SELECT superseded_by, 'replaces it' FROM me
      UNION ALL SELECT operation_id, 'acts on it' FROM signing_operation
        WHERE tenant_id = ${tenantId} AND target_operation_id = ${operationId})
    SELECT o.operation_id AS "operationId", o.action, o.state, ids.relation
    FROM ids JOIN signing_operation o ON o.tenant_id = ${tenantId} AND o.operation_id = ids.id
    ORDER BY o.operation_id LIMIT 100`;
}
