import type { Ledger } from "./database.js";
import { firstIdAt } from "./id-at.js";
import { openSilentTickets } from "./silence.js";

/** One ager at a time; a transaction's lock, so that a pooler may stand between. */
const agerLock = 0x0c5_a6ed;

const minutes = (name: string): string => `make_interval(mins => (t.thresholds ->> '${name}')::int)`;

const openStatement = `WITH old AS (
    SELECT t.tenant_id, t.ticket_owners, t.thresholds, o.operation_id,
      CASE
        WHEN o.attempt_no >= (t.thresholds ->> 'age-attempts')::int THEN 'too-many-attempts'
        WHEN o.attempt_no > 0 AND o.last_observation ->> 'kind' = 'declined' AND o.first_attempt_at < now() - ${minutes("age-declined")} THEN 'aged-declined'
        WHEN o.attempt_no > 0 AND o.first_attempt_at < now() - ${minutes("age-unknown")} THEN 'aged-unresolved'
        WHEN o.open_dependencies > 0 AND o.created_at < now() - ${minutes("age-waiting")} THEN 'aged-waiting'
        WHEN o.attempt_no = 0 AND o.open_dependencies = 0 AND o.created_at < now() - ${minutes("age-planned")} THEN 'aged-planned'
      END AS reason
    FROM tenant t CROSS JOIN LATERAL (
      SELECT operation_id, state, attempt_no, last_observation, first_attempt_at, created_at, open_dependencies FROM signing_operation s
      WHERE s.tenant_id = t.tenant_id AND s.state IN ('PLANNED','IN_FLIGHT','UNKNOWN','RECONCILING')
        AND s.operation_id < ${firstIdAt(
          `(now() - LEAST(${["age-unknown", "age-planned", "age-declined", "age-waiting"].map(minutes).join(", ")}, interval '5 minutes'))`,
        )}) o)
  INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
  SELECT old.tenant_id, gen_random_uuid(), 'aged', 'operation', old.operation_id::text, old.ticket_owners ->> 'aged', old.reason,
    now() + make_interval(mins => (old.thresholds ->> 'aged')::int)
  FROM old WHERE old.reason IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM ticket k WHERE k.tenant_id = old.tenant_id AND k.kind = 'aged' AND k.subject_kind = 'operation'
      AND k.subject_id = old.operation_id::text
      AND (k.resolved_at IS NULL OR k.resolved_at > now() - make_interval(mins => (old.thresholds ->> 'aged')::int)))
  ON CONFLICT DO NOTHING RETURNING 1`;

const closeStatement = `UPDATE ticket k SET resolved_at = now(), resolved_by = 'ledger', resolution = 'operation ended as ' || o.state
  FROM signing_operation o
  WHERE k.kind = 'aged' AND k.subject_kind = 'operation' AND k.resolved_at IS NULL
    AND o.tenant_id = k.tenant_id AND o.operation_id = k.subject_id::uuid AND (o.finished_at IS NOT NULL OR o.state = 'NEEDS_REVIEW')`;

const circuitStatement = `INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
  SELECT c.tenant_id, gen_random_uuid(), 'connection-paused', 'connection', c.connection_id, t.ticket_owners ->> 'connection-paused',
    'provider-down', now() + make_interval(mins => (t.thresholds ->> 'connection-paused')::int)
  FROM provider_connection c JOIN tenant t ON t.tenant_id = c.tenant_id
  WHERE c.circuit_opened_at < now() - interval '5 minutes'
  ON CONFLICT DO NOTHING`;

/** Events that nobody applies: one ticket per connection, not one per event. */
const receivedStatement = `WITH late AS (
    SELECT DISTINCT i.tenant_id, i.connection_id FROM webhook_inbox i JOIN tenant t ON t.tenant_id = i.tenant_id
    WHERE i.status = 'RECEIVED' AND i.due_at IS NOT NULL AND i.failures = 0
      AND i.received_at < now() - ${minutes("age-received")} AND i.replays = 0)
  INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
  SELECT late.tenant_id, gen_random_uuid(), 'aged', 'connection', late.connection_id, t.ticket_owners ->> 'aged', 'events-not-applied',
    now() + make_interval(mins => (t.thresholds ->> 'aged')::int)
  FROM late JOIN tenant t ON t.tenant_id = late.tenant_id
  ON CONFLICT DO NOTHING`;

const appliedAgainStatement = `UPDATE ticket k SET resolved_at = now(), resolved_by = 'ledger', resolution = 'events are applied again'
  WHERE k.kind = 'aged' AND k.subject_kind = 'connection' AND k.reason = 'events-not-applied' AND k.resolved_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM webhook_inbox i JOIN tenant t ON t.tenant_id = i.tenant_id
      WHERE i.due_at IS NOT NULL AND i.tenant_id = k.tenant_id AND i.connection_id = k.subject_id AND i.status = 'RECEIVED'
        AND i.received_at < now() - ${minutes("age-received")})`;

/**
 * Opens an owned ticket for every operation past its tenant's age thresholds, counted from the plan or the first attempt,
 * so that no round trip resets them; closes those of operations that have ended since. Nothing else changes: time moves
 * no state. Returns how many were opened; undefined where another process is at it.
 */
export async function openAgedTickets(ledger: Ledger): Promise<number | undefined> {
  return await ledger.sql.begin(async (sql) => {
    const [lock] = await sql<{ mine: boolean }[]>`SELECT pg_try_advisory_xact_lock(${agerLock}) AS mine`;
    if (lock?.mine !== true) return undefined;
    const opened = await sql.unsafe(openStatement);
    await sql.unsafe(closeStatement);
    await sql.unsafe(circuitStatement);
    await sql.unsafe(receivedStatement);
    await sql.unsafe(appliedAgainStatement);
    await openSilentTickets(sql);
    // Processes that died long ago have nothing left to sweep; the last of its kind tells since when there is none.
    await sql`
      DELETE FROM worker_process p WHERE p.heartbeat_at < now() - interval '1 day'
        AND EXISTS (SELECT 1 FROM worker_process o WHERE o.kind = p.kind AND o.heartbeat_at > p.heartbeat_at)`;
    return opened.length;
  });
}
