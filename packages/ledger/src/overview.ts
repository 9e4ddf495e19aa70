import type { Ledger } from "./database.js";
import { talliedMoves } from "./tally.js";

/** Where an overview looks: these tenants, or all. */
export type TenantScope = readonly string[] | null;

export interface StateCount {
  tenantId: string;
  connectionId: string;
  action: string;
  state: string;
  count: number;
}

const scoped = (ledger: Ledger, tenants: TenantScope, column = "tenant_id") => {
  const { sql } = ledger;
  return tenants === null
    ? sql`true`
    : sql`${sql(column)} IN (SELECT jsonb_array_elements_text(${JSON.stringify(tenants)}::text::jsonb))`;
};

/**
 * Operations by tenant, connection, action and state. What is not final is counted exactly, each combination in its own
 * range of an index; the final states come from the tally (`tally.ts`), which may be a minute behind.
 */
export async function countStates(ledger: Ledger, tenants: TenantScope): Promise<StateCount[]> {
  return await ledger.sql<StateCount[]>`
    SELECT c.tenant_id AS "tenantId", c.connection_id AS "connectionId", a.action, s.state, n.count
    FROM provider_connection c
    CROSS JOIN (VALUES ('SEND'), ('VOID'), ('RESEND'), ('FINALIZE')) AS a(action)
    CROSS JOIN (VALUES ('PLANNED'), ('IN_FLIGHT'), ('UNKNOWN'), ('RECONCILING'), ('NEEDS_REVIEW')) AS s(state)
    CROSS JOIN LATERAL (SELECT count(*)::int AS count FROM signing_operation o
      WHERE o.tenant_id = c.tenant_id AND o.connection_id = c.connection_id AND o.action = a.action AND o.state = s.state) n
    WHERE ${scoped(ledger, tenants, "c.tenant_id")} AND n.count > 0
    UNION ALL
    SELECT tenant_id, connection_id, action, to_state, sum(count)::float8 FROM (${ledger.sql.unsafe(talliedMoves)}) t
    WHERE to_state IN ('CONFIRMED', 'TERMINAL_FAILED', 'SUPERSEDED') AND ${scoped(ledger, tenants)}
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`;
}

export interface OldestOpen {
  tenantId: string;
  subjectId: string;
  /** By the database's clock. */
  seconds: number;
}

/** The oldest of what should not grow old: an UNKNOWN since its first attempt, a review since its last move, an event. */
export async function oldestOpen(
  ledger: Ledger,
  tenants: TenantScope,
): Promise<{ unknown: OldestOpen | null; review: OldestOpen | null; received: OldestOpen | null }> {
  const ofState = async (state: "UNKNOWN" | "NEEDS_REVIEW"): Promise<OldestOpen | null> => {
    const [row] = await ledger.sql<OldestOpen[]>`
      SELECT o.tenant_id AS "tenantId", o.operation_id AS "subjectId",
        extract(epoch FROM now() - o.since)::float8 AS seconds
      FROM provider_connection c CROSS JOIN (VALUES ('SEND'), ('VOID'), ('RESEND'), ('FINALIZE')) AS a(action)
      CROSS JOIN LATERAL (
        SELECT tenant_id, operation_id, ${state === "UNKNOWN" ? ledger.sql`COALESCE(first_attempt_at, updated_at)` : ledger.sql`updated_at`} AS since
        FROM signing_operation o
        WHERE o.tenant_id = c.tenant_id AND o.connection_id = c.connection_id AND o.action = a.action AND o.state = ${state}
        ORDER BY since LIMIT 1) o
      WHERE ${scoped(ledger, tenants, "c.tenant_id")} ORDER BY o.since LIMIT 1`;
    return row ?? null;
  };
  const [received] = await ledger.sql<OldestOpen[]>`
    SELECT tenant_id AS "tenantId", inbox_id AS "subjectId", extract(epoch FROM now() - received_at)::float8 AS seconds
    FROM webhook_inbox WHERE due_at IS NOT NULL AND status = 'RECEIVED' AND ${scoped(ledger, tenants)}
    ORDER BY received_at LIMIT 1`;
  return { unknown: await ofState("UNKNOWN"), review: await ofState("NEEDS_REVIEW"), received: received ?? null };
}

export interface OpenTickets {
  tenantId: string;
  kind: string;
  owner: string;
  open: number;
  overdue: number;
  nextDueAt: string;
}

/** Open tickets by tenant, kind and owner, the most urgent first. */
export async function countOpenTickets(ledger: Ledger, tenants: TenantScope): Promise<OpenTickets[]> {
  return await ledger.sql<OpenTickets[]>`
    SELECT tenant_id AS "tenantId", kind, owner, count(*)::int AS open,
      count(*) FILTER (WHERE due_at < now())::int AS overdue, min(due_at) AS "nextDueAt"
    FROM ticket WHERE resolved_at IS NULL AND ${scoped(ledger, tenants)}
    GROUP BY 1, 2, 3 ORDER BY min(due_at) LIMIT 200`;
}

export interface Standstill {
  tenantId: string;
  connectionId: string;
  why: "paused" | "provider-down" | "hold";
  reason: string | null;
  until: string | null;
}

/** Connections that send nothing now: paused, their provider down, or on hold. */
export async function listStandstills(ledger: Ledger, tenants: TenantScope): Promise<Standstill[]> {
  return await ledger.sql<Standstill[]>`
    SELECT tenant_id AS "tenantId", connection_id AS "connectionId",
      CASE WHEN circuit_opened_at IS NOT NULL THEN 'provider-down' ELSE 'paused' END AS why, pause_reason AS reason,
      CASE WHEN isfinite(paused_until) AND paused_until > now() THEN paused_until END AS until
    FROM provider_connection WHERE (circuit_opened_at IS NOT NULL OR paused_until > now()) AND ${scoped(ledger, tenants)}
    UNION ALL
    SELECT h.tenant_id, c.connection_id, 'hold', h.reason, h.ends_at
    FROM hold h JOIN provider_connection c ON c.tenant_id = h.tenant_id AND c.connection_id = COALESCE(h.connection_id, c.connection_id)
    WHERE h.released_at IS NULL AND (h.ends_at IS NULL OR h.ends_at > now()) AND ${scoped(ledger, tenants, "h.tenant_id")}
    ORDER BY 1, 2, 3`;
}

export interface MinuteMoves {
  minute: string;
  action: string;
  from: string;
  to: string;
  count: number;
  msMean: number;
  msMax: number;
}

/** Moves per minute over the last hour, from the tally. */
export async function movesOfLastHour(ledger: Ledger, tenants: TenantScope): Promise<MinuteMoves[]> {
  return await ledger.sql<MinuteMoves[]>`
    SELECT minute, action, from_state AS "from", to_state AS "to", sum(count)::int AS count,
      COALESCE(round(sum(ms_sum) / NULLIF(sum(count), 0)), 0)::float8 AS "msMean", max(ms_max)::float8 AS "msMax"
    FROM tally_minute WHERE minute >= now() - interval '1 hour' AND ${scoped(ledger, tenants)}
    GROUP BY 1, 2, 3, 4 ORDER BY 1`;
}

/** Every tenant's id. */
export async function listTenantIds(ledger: Ledger): Promise<string[]> {
  const rows = await ledger.sql<{ id: string }[]>`SELECT tenant_id AS id FROM tenant ORDER BY tenant_id`;
  return rows.map(({ id }) => id);
}
