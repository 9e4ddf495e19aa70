import { type Ledger, run } from "./database.js";
import { operationOfEvent } from "./guards-sql.js";
import { firstIdAt } from "./id-at.js";

const statement = `WITH old AS (
    SELECT b.tenant_id, b.inbox_id, b.received_at FROM tenant t CROSS JOIN LATERAL (
      SELECT b.tenant_id, b.inbox_id, b.received_at FROM webhook_body b
      JOIN webhook_inbox i ON i.tenant_id = b.tenant_id AND i.inbox_id = b.inbox_id AND i.received_at = b.received_at
      WHERE b.tenant_id = t.tenant_id AND b.inbox_id < ${firstIdAt("(now() - make_interval(days => $1::int))")}
        AND b.received_at < now() - make_interval(days => $1::int)
        AND i.status IN ('APPLIED','NO_OP','CONFLICT','DISCARDED')
        AND NOT EXISTS (SELECT 1 FROM legal_hold h WHERE h.tenant_id = b.tenant_id AND h.released_at IS NULL
          AND (h.operation_id IS NULL OR h.operation_id = (${operationOfEvent("i")})))
      ORDER BY b.inbox_id LIMIT $2::int) b
    WHERE $3::text IS NULL OR t.tenant_id = $3::text
    LIMIT $2::int)
  DELETE FROM webhook_body b USING old
  WHERE b.tenant_id = old.tenant_id AND b.inbox_id = old.inbox_id AND b.received_at = old.received_at`;

/**
 * Erases raw bodies that were received more than `days` days ago, never those of events that are still open or under
 * a legal hold (a trigger refuses both, too). The inbox rows and their digests stay. Returns how many; `limit` at most.
 * @param tenantId only this tenant's; every tenant's when left out
 */
export async function eraseOldBodies(ledger: Ledger, days: number, limit = 1_000, tenantId?: string): Promise<number> {
  return (await run(ledger.sql, statement, [days, limit, tenantId ?? null])).count;
}
