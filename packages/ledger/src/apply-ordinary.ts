import type { EventToApply } from "./apply-event.js";
import { type Ledger, run } from "./database.js";
import { effectOf, endStatuses, movesFrom, type SigningStatus, signingStatuses } from "./signing-table.js";

/**
 * The signing row is locked before the inbox row, as everywhere: `i` joins what `s` has locked. A draft of ours that turns
 * out to be sent is evidence, so STAGED is left to the long way.
 */
const statement = `WITH s AS MATERIALIZED (
    SELECT tenant_id, connection_id, provider_ref, operation_id, status, status = ANY(string_to_array($6, ',')) AS moves FROM contract_signing
    WHERE tenant_id = $1 AND connection_id = $2 AND provider_ref = $3 AND operation_id IS NOT NULL
      AND ($8::text IS NULL OR operation_id::text = $8) AND status <> 'STAGED' AND status = ANY(string_to_array($7, ','))
    FOR UPDATE),
  i AS (
    SELECT i.tenant_id, i.inbox_id, i.received_at, s.connection_id, s.provider_ref, s.operation_id, s.status, s.moves
    FROM s JOIN webhook_inbox i ON i.tenant_id = s.tenant_id AND i.inbox_id = $4::uuid AND i.status IN ('RECEIVED','WAITING')
    FOR UPDATE OF i),
  m AS (
    UPDATE contract_signing c SET status = $5, status_at = now(), updated_at = now(), asked_at = now() FROM i
    WHERE c.tenant_id = i.tenant_id AND c.connection_id = i.connection_id AND c.provider_ref = i.provider_ref AND i.moves),
  u AS (
    UPDATE webhook_inbox w SET status = CASE WHEN i.moves THEN 'APPLIED' ELSE 'NO_OP' END,
      outcome = CASE WHEN i.moves THEN $5 ELSE 'already-' || lower(i.status) END, due_at = NULL, wait_until = NULL, applied_at = now()
    FROM i WHERE w.tenant_id = i.tenant_id AND w.inbox_id = i.inbox_id AND w.received_at = i.received_at
    RETURNING w.tenant_id, w.inbox_id, w.status, w.replays, i.operation_id),
  closed AS (
    UPDATE ticket t SET resolved_at = now(), resolved_by = 'ledger', resolution = 'the event was settled as ' || u.status
    FROM u WHERE u.replays > 0 AND t.tenant_id = u.tenant_id AND t.subject_kind = 'inbox' AND t.subject_id = u.inbox_id::text
      AND t.resolved_at IS NULL),
  woken AS (
    UPDATE signing_operation o SET due_at = now(), not_before = NULL FROM i
    WHERE i.moves AND $9::boolean AND o.tenant_id = i.tenant_id AND o.target_operation_id = i.operation_id AND o.target_ref = i.provider_ref
      AND o.action = 'FINALIZE' AND o.state = 'UNKNOWN')
  SELECT status, operation_id FROM u`;

const ends: readonly SigningStatus[] = endStatuses;

/**
 * Applies what nearly every event is, in one statement: a story about a request of ours that moves it, or that is the same or
 * older. undefined: it is something else (evidence, a conflict, an unknown reference, or settled already), and nothing was
 * done.
 */
export async function applyOrdinary(
  ledger: Ledger,
  event: EventToApply,
): Promise<{ kind: "applied" | "no-op"; operationId: string } | undefined> {
  const { status } = event;
  // What its row does not name yet is written there first.
  if (event.hint || status === undefined || event.unread === true) return undefined;
  const harmless = signingStatuses.filter((current) => effectOf(current, status) !== "conflict");
  const [row] = await run<{ status: "APPLIED" | "NO_OP"; operation_id: string }>(ledger.sql, statement, [
    event.tenantId,
    event.connectionId,
    event.providerRef,
    event.inboxId,
    status,
    movesFrom(status).join(","),
    harmless.join(","),
    event.operationId ?? null,
    ends.includes(status),
  ]);
  if (row === undefined) return undefined;
  return { kind: row.status === "APPLIED" ? "applied" : "no-op", operationId: row.operation_id };
}
