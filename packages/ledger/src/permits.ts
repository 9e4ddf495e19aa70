import type { Ledger } from "./database.js";

/**
 * Takes a block of calls of a rate-limited connection, all processes together: `count` calls, the first in `waitMs`, then
 * one every `1000 / perSecond` ms; what is not used lapses. undefined where the next block begins later than `maxWaitMs`.
 */
export async function takePermits(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  block: { count: number; perSecond: number; maxWaitMs: number },
): Promise<{ waitMs: number } | undefined> {
  const seconds = block.count / block.perSecond;
  const [row] = await ledger.sql<{ wait_ms: number }[]>`
    INSERT INTO connection_permit AS p (tenant_id, connection_id, next_at)
    VALUES (${tenantId}, ${connectionId}, clock_timestamp() + make_interval(secs => ${seconds}::float8))
    ON CONFLICT (tenant_id, connection_id) DO UPDATE
      SET next_at = GREATEST(p.next_at, clock_timestamp()) + make_interval(secs => ${seconds}::float8)
      WHERE p.next_at <= clock_timestamp() + make_interval(secs => ${block.maxWaitMs}::float8 / 1000)
    RETURNING GREATEST(0, EXTRACT(EPOCH FROM (next_at - make_interval(secs => ${seconds}::float8) - clock_timestamp())) * 1000)::float8 AS wait_ms`;
  return row === undefined ? undefined : { waitMs: row.wait_ms };
}
