import { type Ledger, listConnections, NotFoundError } from "@countersign/ledger";
import { RefusedError } from "./errors.js";

/**
 * The connection that is meant: the named one, else the tenant's only one, else its default.
 * @throws NotFoundError, or RefusedError `connection-required`
 */
export async function chooseConnection(ledger: Ledger, tenantId: string, named?: string): Promise<string> {
  await ledger.tenantKey(tenantId);
  const connections = await listConnections(ledger, tenantId);
  if (named !== undefined) {
    if (!connections.some(({ connectionId }) => connectionId === named)) throw new NotFoundError("connection");
    return named;
  }
  const chosen = connections.length === 1 ? connections[0] : connections.find(({ isDefault }) => isDefault);
  if (chosen !== undefined) return chosen.connectionId;
  const remedy =
    connections.length === 0
      ? "this tenant has no connection; make one with countersign connection create"
      : "this tenant has several connections and no default; name one with --connection";
  throw new RefusedError("connection-required", remedy);
}
