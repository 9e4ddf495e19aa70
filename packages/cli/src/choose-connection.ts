import { chooseConnection as choose } from "@countersign/client/transaction";
import { type Ledger, listConnections } from "@countersign/ledger";

/**
 * The connection that is meant: the named one, else the tenant's only one, else its default.
 * @throws NotFoundError for the tenant, PlanRefusedError `connection-unknown` or `connection-required`
 */
export async function chooseConnection(ledger: Ledger, tenantId: string, named?: string): Promise<string> {
  await ledger.tenantKey(tenantId);
  const { connectionId } = choose(await listConnections(ledger, tenantId), named);
  return connectionId;
}
