import { type Connection, type Ledger, openConnection } from "@countersign/ledger";

type Opened = Connection & { credential: string };

/**
 * Connections for the moment of a call, kept for a few seconds: a changed credential or base URL is seen soon, and a
 * thousand calls don't read the same row. Whether it is *paused* is never decided from here but by the claim.
 */
export function connectionCache(
  ledger: Ledger,
  keepMs = 2_000,
): (tenantId: string, connectionId: string) => Promise<Opened> {
  const cache = new Map<string, { until: number; connection: Promise<Opened> }>();
  return async (tenantId, connectionId) => {
    const key = `${tenantId} ${connectionId}`;
    const known = cache.get(key);
    if (known !== undefined && known.until > performance.now()) return known.connection;
    const connection = openConnection(ledger, tenantId, connectionId);
    cache.set(key, { until: performance.now() + keepMs, connection });
    try {
      return await connection;
    } catch (error) {
      cache.delete(key);
      throw error;
    }
  };
}
