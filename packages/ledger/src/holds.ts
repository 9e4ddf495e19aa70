import { randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { rampUp } from "./ramp-up.js";
import { checkReason } from "./reason.js";

export interface Hold {
  holdId: string;
  /** null: every connection of the tenant. */
  connectionId: string | null;
  /** null: every action. */
  action: string | null;
  heldBy: string;
  reason: string;
  createdAt: string;
  endsAt: string | null;
}

/**
 * Stops sending for a tenant, or only for one connection or action of it: planning goes on, calls under way end, nothing
 * more is sent. It ends when released, or by itself after `forMs`. Throws not-found for the tenant or connection.
 */
export async function holdSending(
  ledger: Ledger,
  hold: { tenantId: string; connectionId?: string; action?: string; by: string; reason: string; forMs?: number },
): Promise<string> {
  checkReason(hold.by, hold.reason);
  const holdId = randomUUID();
  const result = await ledger.sql`
    INSERT INTO hold (tenant_id, hold_id, connection_id, action, held_by, reason, ends_at)
    SELECT t.tenant_id, ${holdId}::uuid, ${hold.connectionId ?? null}, ${hold.action ?? null}, ${hold.by}, ${hold.reason},
      now() + make_interval(secs => ${hold.forMs ?? null}::float8 / 1000)
    FROM tenant t WHERE t.tenant_id = ${hold.tenantId} AND (${hold.connectionId ?? null}::text IS NULL OR EXISTS (
      SELECT 1 FROM provider_connection c WHERE c.tenant_id = t.tenant_id AND c.connection_id = ${hold.connectionId ?? null}))`;
  if (result.count === 0) throw new NotFoundError(hold.connectionId === undefined ? "tenant" : "connection");
  return holdId;
}

/** Ends a hold; what waited is sent again gradually. Throws not-found, or `hold-over` where it has ended already. */
export async function releaseHold(ledger: Ledger, tenantId: string, holdId: string, by: string): Promise<void> {
  await ledger.sql.begin(async (sql) => {
    const [known] = await sql<{ connection_id: string | null; action: string | null; over: boolean }[]>`
      SELECT connection_id, action, released_at IS NOT NULL OR COALESCE(ends_at <= now(), false) AS over FROM hold
      WHERE tenant_id = ${tenantId} AND hold_id = ${holdId} FOR UPDATE`;
    if (known === undefined) throw new NotFoundError("hold");
    if (known.over) throw new PlanRefusedError("hold-over", "this hold has ended already");
    await sql`
      UPDATE hold SET released_at = now(), released_by = ${by} WHERE tenant_id = ${tenantId} AND hold_id = ${holdId}`;
    await rampUp(sql, { tenantId, connectionId: known.connection_id, action: known.action });
  });
}

/** Holds in force. */
export async function listHolds(ledger: Ledger, tenantId: string): Promise<Hold[]> {
  return await ledger.sql<Hold[]>`
    SELECT hold_id AS "holdId", connection_id AS "connectionId", action, held_by AS "heldBy", reason, created_at AS "createdAt", ends_at AS "endsAt"
    FROM hold WHERE tenant_id = ${tenantId} AND released_at IS NULL AND (ends_at IS NULL OR ends_at > now()) ORDER BY created_at`;
}
