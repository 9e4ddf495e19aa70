import type { AnySql } from "./database.js";

/** Over how long what waited becomes due, ms per row and at most. */
const perRowMs = 20;
const longestMs = 60_000;

/**
 * What waited for a pause, a hold or a circuit becomes due again: not all at once, but spread by chance over a time that
 * grows with their number. A rate limit of the connection orders them beyond that.
 */
export async function rampUp(
  sql: AnySql,
  scope: { tenantId: string; connectionId?: string | null; action?: string | null },
): Promise<void> {
  const connectionId = scope.connectionId ?? null;
  const action = scope.action ?? null;
  await sql`
    WITH waiting AS (
      SELECT o.tenant_id, o.operation_id FROM signing_operation o
      WHERE o.tenant_id = ${scope.tenantId} AND o.state IN ('PLANNED','UNKNOWN') AND o.due_at > now()
        AND (o.not_before IS NULL OR o.not_before <= now())
        AND (${connectionId}::text IS NULL OR o.connection_id = ${connectionId})
        AND (${action}::text IS NULL OR o.action = ${action})
      ORDER BY o.operation_id FOR UPDATE OF o),
    total AS (SELECT count(*) AS rows FROM waiting)
    UPDATE signing_operation o
    SET due_at = now() + make_interval(secs => random() * LEAST(total.rows * ${perRowMs}::float8, ${longestMs}::float8) / 1000)
    FROM waiting w, total WHERE o.tenant_id = w.tenant_id AND o.operation_id = w.operation_id
      AND o.state IN ('PLANNED','UNKNOWN') AND o.due_at IS NOT NULL`;
}
