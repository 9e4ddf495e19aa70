import { type AnySql, type Ledger, run } from "./database.js";

export interface InboxRow {
  tenantId: string;
  inboxId: string;
}

export type InboxStatus = "APPLIED" | "NO_OP" | "CONFLICT" | "QUARANTINED";

/**
 * Locks an event that is still to be applied; false where it is settled or gone. Waits for whoever is at it: the due loop
 * holds a row for a moment, and whoever gave up then would leave the event to its next visit.
 */
export async function lockInbox(sql: AnySql, row: InboxRow): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM webhook_inbox WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId}
      AND status IN ('RECEIVED','WAITING') FOR UPDATE`;
  return rows.length === 1;
}

/**
 * What an event names, where nobody could read it when it came in: like all others it is found by its reference, when that
 * is bound or asked about.
 */
export async function nameRequest(
  sql: AnySql,
  row: InboxRow,
  named: { eventType: string; providerRef: string; operationId?: string },
): Promise<void> {
  await sql`
    UPDATE webhook_inbox SET event_type = ${named.eventType}, provider_ref = ${named.providerRef}, operation_id = ${named.operationId ?? null}
    WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND provider_ref IS NULL AND status IN ('RECEIVED','WAITING')`;
}

const settleStatement = `WITH u AS (
    UPDATE webhook_inbox SET status = $3, outcome = $4, due_at = NULL, wait_until = NULL,
      applied_at = CASE WHEN $3 = 'QUARANTINED' THEN NULL ELSE now() END
    WHERE tenant_id = $1 AND inbox_id = $2::uuid AND status IN ('RECEIVED','WAITING')
    RETURNING tenant_id, inbox_id, connection_id, provider_ref, status, replays),
  closed AS (
    UPDATE ticket t SET resolved_at = now(), resolved_by = 'ledger', resolution = 'the event was settled as ' || u.status
    FROM u WHERE u.replays > 0 AND u.status IN ('APPLIED','NO_OP') AND t.tenant_id = u.tenant_id AND t.subject_kind = 'inbox'
      AND t.subject_id = u.inbox_id::text AND t.resolved_at IS NULL)
  SELECT 1 FROM u`;

/**
 * Ends an event with its outcome; false where somebody else has. One that a person or a binding made due again and that
 * could now be applied closes its ticket.
 */
export async function settleInbox(sql: AnySql, row: InboxRow, status: InboxStatus, outcome: string): Promise<boolean> {
  return (await run(sql, settleStatement, [row.tenantId, row.inboxId, status, outcome])).length === 1;
}

/** QUARANTINED, with an owned ticket; the request that it speaks of, where it names one, is asked about. */
export async function quarantineInbox(sql: AnySql, row: InboxRow, reason: string): Promise<boolean> {
  if (!(await settleInbox(sql, row, "QUARANTINED", reason))) return false;
  await run(sql, leftToAPersonStatement("quarantine"), [row.tenantId, row.inboxId, reason]);
  return true;
}

/** An owned ticket about an event, and a poll of the request that it names: its state must not wait for the person. */
const leftToAPersonStatement = (kind: "quarantine" | "dead-letter"): string => `WITH i AS (
    SELECT * FROM webhook_inbox WHERE tenant_id = $1 AND inbox_id = $2::uuid),
  asked AS (${askAboutBound("i")})
  INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
  SELECT i.tenant_id, gen_random_uuid(), '${kind}', 'inbox', i.inbox_id::text, n.ticket_owners ->> '${kind}', $3,
    now() + make_interval(mins => (n.thresholds ->> '${kind}')::int)
  FROM i JOIN tenant n ON n.tenant_id = i.tenant_id
  ON CONFLICT DO NOTHING`;

/**
 * Makes the open request of each row of `rows` (or, where a row names none, those of its connection that nobody has heard
 * of for an hour) due to be asked about now.
 */
export const askAboutBound = (
  rows: string,
): string => `UPDATE contract_signing s SET asked_at = to_timestamp(0) FROM ${rows}
    WHERE s.tenant_id = ${rows}.tenant_id AND s.connection_id = ${rows}.connection_id AND s.status IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED')
      AND (s.provider_ref = ${rows}.provider_ref OR (${rows}.provider_ref IS NULL AND s.asked_at < now() - interval '1 hour'))`;

/** RECEIVED → WAITING: its reference isn't bound yet. The first wait sets the end; binding makes it due at once. */
export async function waitForBinding(sql: AnySql, row: InboxRow, waitMs: number): Promise<void> {
  await sql`
    UPDATE webhook_inbox SET status = 'WAITING', outcome = 'unbound-reference',
      wait_until = COALESCE(wait_until, now() + make_interval(secs => ${waitMs}::float8 / 1000)),
      due_at = COALESCE(wait_until, now() + make_interval(secs => ${waitMs}::float8 / 1000))
    WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND status IN ('RECEIVED','WAITING')`;
}

/** RECEIVED → WAITING: its poll settles it; due again only as insurance. */
export async function waitForPoll(sql: AnySql, row: InboxRow, insuranceMs: number): Promise<void> {
  await sql`
    UPDATE webhook_inbox SET status = 'WAITING', outcome = 'asks-the-provider',
      due_at = now() + make_interval(secs => ${insuranceMs}::float8 / 1000)
    WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND status IN ('RECEIVED','WAITING')`;
}

const failureStatement = `UPDATE webhook_inbox SET failures = failures + 1, outcome = $3,
    status = CASE WHEN failures + 1 >= $4::int THEN 'DEAD' ELSE status END,
    due_at = CASE WHEN failures + 1 >= $4::int THEN NULL ELSE now() + make_interval(secs => $5::float8 / 1000) END
  WHERE tenant_id = $1 AND inbox_id = $2::uuid AND status IN ('RECEIVED','WAITING')
  RETURNING status`;

/** Bounded applications, then DEAD with a ticket; the raw event stays. Returns the status afterwards. */
export async function recordApplyFailure(
  ledger: Ledger,
  row: InboxRow,
  code: string,
  limits: { maxFailures: number; backoffMs: number },
): Promise<string | undefined> {
  return await ledger.sql.begin(async (sql) => {
    const [after] = await run<{ status: string }>(sql, failureStatement, [
      row.tenantId,
      row.inboxId,
      code,
      limits.maxFailures,
      limits.backoffMs,
    ]);
    if (after?.status === "DEAD") {
      await run(sql, leftToAPersonStatement("dead-letter"), [row.tenantId, row.inboxId, code]);
    }
    return after?.status;
  });
}
