import type { Ledger } from "./database.js";
import { NotFoundError } from "./errors.js";
import type { ThresholdName, TicketKind } from "./tickets.js";

export interface ListedTenant {
  tenantId: string;
  createdAt: string;
  connections: number;
  openTickets: number;
}

/** Every tenant, by id. */
export async function listTenants(ledger: Ledger): Promise<ListedTenant[]> {
  return await ledger.sql<ListedTenant[]>`
    SELECT t.tenant_id AS "tenantId", t.created_at AS "createdAt",
      (SELECT count(*)::int FROM provider_connection c WHERE c.tenant_id = t.tenant_id) AS connections,
      (SELECT count(*)::int FROM ticket k WHERE k.tenant_id = t.tenant_id AND k.resolved_at IS NULL) AS "openTickets"
    FROM tenant t ORDER BY t.tenant_id`;
}

/**
 * Who owns a tenant's tickets from now on, for the kinds named; the others keep their owner. Open tickets of these kinds
 * change hands too: a ticket must not stay with a team that is gone. Returns how many did. Throws not-found.
 */
export async function setTicketOwners(
  ledger: Ledger,
  tenantId: string,
  owners: Partial<Record<TicketKind, string>>,
): Promise<{ handedOver: number }> {
  return await ledger.sql.begin(async (sql) => {
    const changed = await sql`
      UPDATE tenant SET ticket_owners = ticket_owners || ${sql.json(owners)}::jsonb WHERE tenant_id = ${tenantId}`;
    if (changed.count === 0) throw new NotFoundError("tenant");
    const handedOver = await sql`
      UPDATE ticket k SET owner = n.value FROM jsonb_each_text(${sql.json(owners)}::jsonb) n
      WHERE k.tenant_id = ${tenantId} AND k.kind = n.key AND k.resolved_at IS NULL AND k.owner <> n.value`;
    return { handedOver: handedOver.count };
  });
}

/**
 * A tenant's thresholds from now on, for those named: minutes, and `age-attempts` attempts. Open tickets keep their due
 * time. Throws not-found.
 */
export async function setThresholds(
  ledger: Ledger,
  tenantId: string,
  thresholds: Partial<Record<ThresholdName, number>>,
): Promise<void> {
  const changed = await ledger.sql`
    UPDATE tenant SET thresholds = thresholds || ${ledger.sql.json(thresholds)}::jsonb WHERE tenant_id = ${tenantId}`;
  if (changed.count === 0) throw new NotFoundError("tenant");
}
