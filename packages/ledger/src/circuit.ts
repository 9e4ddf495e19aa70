import type { Ledger } from "./database.js";
import { rampUp } from "./ramp-up.js";

export interface CircuitLimits {
  /** Calls in a row that find the provider down before only a probe calls. */
  failures: number;
  /** Until the first probe, ms. */
  probeMs: number;
}

/**
 * A call found the provider down (no answer, or a 5xx). At the limit the connection's circuit opens: nothing is sent and
 * nothing looked up but by one probe. True where this call opened it.
 */
export async function noteProviderDown(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  limits: CircuitLimits,
): Promise<boolean> {
  const [row] = await ledger.sql<{ opened: boolean }[]>`
    WITH u AS (
      UPDATE provider_connection SET circuit_failures = circuit_failures + 1,
        circuit_opened_at = CASE WHEN circuit_failures + 1 >= ${limits.failures} THEN COALESCE(circuit_opened_at, now()) END
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}
      RETURNING tenant_id, connection_id, circuit_opened_at),
    probe AS (
      INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after, not_before)
      SELECT tenant_id, gen_random_uuid(), 'probe', connection_id, connection_id,
        now() + make_interval(secs => ${limits.probeMs}::float8 / 1000), now() + make_interval(secs => ${limits.probeMs}::float8 / 1000)
      FROM u WHERE circuit_opened_at IS NOT NULL
      ON CONFLICT DO NOTHING RETURNING 1)
    SELECT EXISTS (SELECT 1 FROM probe) AS opened`;
  return row?.opened ?? false;
}

/**
 * The provider answered. Closes the circuit and makes what waited for it due gradually. Call it only where the connection
 * was seen with failures: a healthy connection's row is never written.
 */
export async function noteProviderUp(ledger: Ledger, tenantId: string, connectionId: string): Promise<void> {
  await ledger.sql.begin(async (sql) => {
    const [before] = await sql<{ open: boolean }[]>`
      SELECT circuit_opened_at IS NOT NULL AS open FROM provider_connection
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId} FOR UPDATE`;
    if (before === undefined) return;
    await sql`
      UPDATE provider_connection SET circuit_failures = 0, circuit_opened_at = NULL
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
    if (!before.open) return;
    await rampUp(sql, { tenantId, connectionId });
    await sql`
      UPDATE ticket SET resolved_at = now(), resolved_by = 'ledger', resolution = 'the provider answers again'
      WHERE tenant_id = ${tenantId} AND kind = 'connection-paused' AND subject_kind = 'connection' AND subject_id = ${connectionId}
        AND reason = 'provider-down' AND resolved_at IS NULL`;
  });
}

/** Where nothing can be asked for free, time half-opens the circuit: calls go out again, and the next failure opens it. */
export async function halfOpen(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  limits: CircuitLimits,
): Promise<void> {
  await ledger.sql.begin(async (sql) => {
    await sql`
      UPDATE provider_connection SET circuit_failures = ${Math.max(0, limits.failures - 1)}, circuit_opened_at = NULL
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
    await rampUp(sql, { tenantId, connectionId });
  });
}
