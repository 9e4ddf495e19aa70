import { type AnySql, type Ledger, run } from "./database.js";
import { firstIdAt } from "./id-at.js";
import { catchUp } from "./polls.js";

/**
 * Why an endpoint has an owned ticket (DESIGN §7 "Silence is not peace"): `silent`: requests were sent and no event came;
 * `events-missed`: the provider's record moved on and no event told; `refusing`: deliveries come and none verifies;
 * `ingress-outage`: deliveries could not be stored, or nobody listened.
 */
export type SilenceReason = "silent" | "events-missed" | "refusing" | "ingress-outage";

const minutes = (name: string): string => `make_interval(mins => (t.thresholds ->> '${name}')::int)`;

/**
 * Goes by what is known of the connection's newest delivery: a second endpoint on the same connection (the provider's way
 * of rotating a secret) may be silent as long as the other delivers.
 */
const findStatement = `WITH heard AS (
    SELECT e.tenant_id, e.connection_id, max(GREATEST(e.created_at, e.last_verified_at)) AS at, min(e.suspect_since) AS suspect_since,
      (array_agg(e.endpoint_id ORDER BY e.created_at DESC))[1] AS endpoint_id
    FROM webhook_endpoint e WHERE e.disabled_at IS NULL GROUP BY e.tenant_id, e.connection_id)
  SELECT h.tenant_id AS "tenantId", h.connection_id AS "connectionId", h.endpoint_id AS "endpointId",
    CASE WHEN h.suspect_since < now() - ${minutes("age-endpoint")} THEN 'events-missed' ELSE 'silent' END AS reason
  FROM heard h JOIN tenant t ON t.tenant_id = h.tenant_id
  WHERE (h.suspect_since < now() - ${minutes("age-endpoint")}
      OR (h.at < now() - ${minutes("age-endpoint")} AND EXISTS (
        SELECT 1 FROM signing_operation o WHERE o.tenant_id = h.tenant_id AND o.action = 'SEND' AND o.state = 'CONFIRMED'
          AND o.connection_id = h.connection_id AND o.operation_id > ${firstIdAt("h.at")}
          AND o.operation_id < ${firstIdAt(`(now() - ${minutes("age-endpoint")})`)})))
    AND NOT EXISTS (SELECT 1 FROM ticket k WHERE k.tenant_id = h.tenant_id AND k.kind = 'endpoint-silent' AND k.subject_kind = 'endpoint'
      AND k.subject_id = h.endpoint_id AND k.resolved_at IS NULL)`;

/** Events come again: the ticket of a silent endpoint is closed by what it waited for. */
const closeStatement = `UPDATE ticket k SET resolved_at = now(), resolved_by = 'ledger', resolution = 'the endpoint delivers again'
  FROM webhook_endpoint e
  WHERE k.kind = 'endpoint-silent' AND k.subject_kind = 'endpoint' AND k.resolved_at IS NULL AND k.reason <> 'ingress-outage'
    AND e.tenant_id = k.tenant_id AND e.endpoint_id = k.subject_id AND e.last_verified_at > k.opened_at AND e.suspect_since IS NULL`;

/** Opens and closes the tickets of silent endpoints; each new one has the connection's open requests asked about. */
export async function openSilentTickets(sql: AnySql): Promise<number> {
  const silent = await run<Silence>(sql, findStatement, []);
  for (const each of silent) await reportSilence(sql, each);
  await run(sql, closeStatement, []);
  return silent.length;
}

export interface Silence {
  tenantId: string;
  connectionId: string;
  endpointId: string;
  reason: SilenceReason;
  /** Counts and codes for the ticket. */
  details?: Record<string, string | number>;
}

/**
 * One owned ticket per endpoint while it is open, and a catch-up: whatever the events would have told is asked about at
 * once. True where the ticket is new.
 */
export async function reportSilence(sql: AnySql, silence: Silence): Promise<boolean> {
  const { tenantId, connectionId, endpointId, reason, details } = silence;
  const opened = await sql`
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, details, due_at)
    SELECT tenant_id, gen_random_uuid(), 'endpoint-silent', 'endpoint', ${endpointId}, ticket_owners ->> 'endpoint-silent', ${reason},
      ${JSON.stringify({ connectionId, ...details })}::text::jsonb, now() + make_interval(mins => (thresholds ->> 'endpoint-silent')::int)
    FROM tenant WHERE tenant_id = ${tenantId}
    ON CONFLICT DO NOTHING RETURNING 1`;
  await catchUp(sql, { tenantId, connectionId });
  return opened.length === 1;
}

/** The kind under which an ingress says that it lives. */
export const ingressKind = "webhook-ingress";

/**
 * Called once by an ingress that begins to listen: where no ingress has lived for `gapMs`, the open requests of every endpoint
 * that stood unheard for as long are asked about, and each gets its ticket (the sender may have turned it off meanwhile). Returns the gap in ms;
 * undefined where there was none, or none has ever lived.
 */
export async function noteIngressGap(ledger: Ledger, gapMs: number): Promise<number | undefined> {
  return await ledger.sql.begin(async (sql) => {
    const [row] = await sql<{ gapMs: number | null }[]>`
      SELECT (EXTRACT(EPOCH FROM now() - max(heartbeat_at)) * 1000)::float8 AS "gapMs" FROM worker_process WHERE kind = ${ingressKind}`;
    const gap = row?.gapMs ?? undefined;
    if (gap === undefined || gap < gapMs) return undefined;
    const endpoints = await sql<Omit<Silence, "reason">[]>`
      SELECT tenant_id AS "tenantId", connection_id AS "connectionId", endpoint_id AS "endpointId" FROM webhook_endpoint
      WHERE disabled_at IS NULL AND created_at < now() - make_interval(secs => ${gapMs}::float8 / 1000)`;
    for (const endpoint of endpoints) {
      await reportSilence(sql, {
        ...endpoint,
        reason: "ingress-outage",
        details: { gapSeconds: Math.round(gap / 1000) },
      });
    }
    return gap;
  });
}
