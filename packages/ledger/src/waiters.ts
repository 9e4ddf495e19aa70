import type { Ledger } from "./database.js";

/** An operation that waits for another one. */
export interface Waiter {
  operationId: string;
  action: string;
  state: string;
  relation: string;
}

/** Who waits for an operation: what its end, or a decision on it, releases or retires. */
export async function waitersOf(ledger: Ledger, tenantId: string, operationId: string): Promise<Waiter[]> {
  return await ledger.sql<Waiter[]>`
    SELECT w.operation_id AS "operationId", w.action, w.state, d.relation FROM operation_dependency d
    JOIN signing_operation w ON w.tenant_id = d.tenant_id AND w.operation_id = d.operation_id
    WHERE d.tenant_id = ${tenantId} AND d.depends_on_operation_id = ${operationId} AND d.resolved_at IS NULL AND w.finished_at IS NULL
    ORDER BY w.operation_id`;
}
