import { newId, sha256 } from "@countersign/runtime";
import { type AnySql, type Ledger, run } from "./database.js";

/** A verified delivery, before anything is made of it. */
export interface Delivery {
  tenantId: string;
  connectionId: string;
  endpointId: string;
  /** From what was signed; a derived one is flagged `weakId`. */
  providerEventId: string;
  weakId?: boolean;
  /** A header id that differs from the signed one, or anything else that makes it suspicious. */
  flagged?: boolean;
  eventType?: string;
  providerRef?: string;
  operationId?: string;
  /** Why nobody can interpret it; stored QUARANTINED with a ticket. */
  quarantine?: string;
  body: Uint8Array;
}

export type Recorded =
  | { kind: "stored"; inboxId: string; quarantined: boolean; conflicting: boolean }
  /** The same id with the same body: it is here already. */
  | { kind: "duplicate" };

/** Inbox row, body and (where nobody can interpret it) ticket: one statement, one commit. */
const statement = `WITH x AS (SELECT $1::text AS tenant_id, $2::uuid AS inbox_id, now() AS received_at, $3::text AS connection_id,
    $4::text AS endpoint_id, $5::text AS event_id, $6::bytea AS body_sha256, $7::text AS quarantine),
  i AS (
    INSERT INTO webhook_inbox (tenant_id, inbox_id, received_at, connection_id, endpoint_id, provider_event_id, body_sha256, status,
      event_type, provider_ref, operation_id, conflicting, weak_id, due_at, outcome)
    SELECT tenant_id, inbox_id, received_at, connection_id, endpoint_id, event_id, body_sha256,
      CASE WHEN quarantine IS NULL THEN 'RECEIVED' ELSE 'QUARANTINED' END, $8, $9, $10::uuid,
      $11::boolean OR EXISTS (SELECT 1 FROM webhook_inbox o WHERE o.tenant_id = x.tenant_id AND o.connection_id = x.connection_id
        AND o.provider_event_id = x.event_id AND o.body_sha256 <> x.body_sha256),
      $12::boolean, CASE WHEN quarantine IS NULL THEN received_at END, quarantine
    FROM x
    ON CONFLICT (tenant_id, connection_id, provider_event_id, body_sha256) DO NOTHING
    RETURNING tenant_id, inbox_id, received_at, status, conflicting),
  b AS (
    INSERT INTO webhook_body (tenant_id, inbox_id, received_at, bytes, key_id)
    SELECT tenant_id, inbox_id, received_at, $13::bytea, $14 FROM i),
  t AS (
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
    SELECT i.tenant_id, gen_random_uuid(), 'quarantine', 'inbox', i.inbox_id::text, n.ticket_owners ->> 'quarantine', $7,
      now() + make_interval(mins => COALESCE((n.thresholds ->> 'quarantine')::int, 60))
    FROM i JOIN tenant n ON n.tenant_id = i.tenant_id WHERE i.status = 'QUARANTINED'
    ON CONFLICT DO NOTHING)
  SELECT inbox_id, status, conflicting FROM i`;

const associated = (tenantId: string, inboxId: string): string => `${tenantId}/webhook_body/${inboxId}`;

/** Stores a verified delivery. Answer 2xx only after it resolved; on any error answer 503 (law 8). */
export async function recordDelivery(ledger: Ledger, delivery: Delivery): Promise<Recorded> {
  const key = await ledger.tenantKey(delivery.tenantId);
  const inboxId = newId();
  const [row] = await run<{ inbox_id: string; status: string; conflicting: boolean }>(ledger.sql, statement, [
    delivery.tenantId,
    inboxId,
    delivery.connectionId,
    delivery.endpointId,
    delivery.providerEventId,
    sha256(delivery.body),
    delivery.quarantine ?? null,
    delivery.eventType ?? null,
    delivery.providerRef ?? null,
    delivery.operationId ?? null,
    delivery.flagged === true,
    delivery.weakId === true,
    key.seal(delivery.body, associated(delivery.tenantId, inboxId)),
    key.keyId,
  ]);
  if (row === undefined) return { kind: "duplicate" };
  return {
    kind: "stored",
    inboxId: row.inbox_id,
    quarantined: row.status === "QUARANTINED",
    conflicting: row.conflicting,
  };
}

export interface InboxEntry {
  tenantId: string;
  inboxId: string;
  connectionId: string;
  endpointId: string;
  provider: string;
  scheme: string;
  status: string;
  failures: number;
  weakId: boolean;
  waitUntilPassed: boolean;
  body: Buffer;
}

/** An inbox row with its body, for the applier; undefined where it is gone or no longer waiting to be applied. */
export async function openInboxEntry(
  ledger: Ledger,
  tenantId: string,
  inboxId: string,
): Promise<InboxEntry | undefined> {
  const [row] = await ledger.sql<(Omit<InboxEntry, "body"> & { sealed: Buffer })[]>`
    SELECT i.tenant_id AS "tenantId", i.inbox_id AS "inboxId", i.connection_id AS "connectionId", i.endpoint_id AS "endpointId",
      c.provider, e.scheme, i.status, i.failures, i.weak_id AS "weakId", COALESCE(i.wait_until <= now(), false) AS "waitUntilPassed",
      b.bytes AS sealed
    FROM webhook_inbox i
    JOIN webhook_body b USING (tenant_id, inbox_id, received_at)
    JOIN provider_connection c ON c.tenant_id = i.tenant_id AND c.connection_id = i.connection_id
    JOIN webhook_endpoint e ON e.endpoint_id = i.endpoint_id
    WHERE i.tenant_id = ${tenantId} AND i.inbox_id = ${inboxId} AND i.status IN ('RECEIVED','WAITING')`;
  if (row === undefined) return undefined;
  const { sealed, ...entry } = row;
  const key = await ledger.tenantKey(tenantId);
  return { ...entry, body: key.open(sealed, associated(tenantId, inboxId)) };
}

export type InboxStatus = "APPLIED" | "NO_OP" | "CONFLICT" | "QUARANTINED";

/** Ends an inbox row with its outcome; false where somebody else has. */
export async function settleInbox(
  sql: AnySql,
  row: { tenantId: string; inboxId: string },
  status: InboxStatus,
  outcome: string,
): Promise<boolean> {
  const result = await sql`
    UPDATE webhook_inbox SET status = ${status}, outcome = ${outcome}, due_at = NULL, wait_until = NULL,
      applied_at = CASE WHEN ${status} = 'QUARANTINED' THEN NULL ELSE now() END
    WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND status IN ('RECEIVED','WAITING')`;
  return result.count === 1;
}

/** RECEIVED → WAITING: its reference isn't bound yet. The first wait sets the end; binding makes it due at once. */
export async function waitForBinding(
  sql: AnySql,
  row: { tenantId: string; inboxId: string },
  waitMs: number,
): Promise<void> {
  await sql`
    UPDATE webhook_inbox SET status = 'WAITING', outcome = 'unbound-reference',
      wait_until = COALESCE(wait_until, now() + make_interval(secs => ${waitMs}::float8 / 1000)),
      due_at = COALESCE(wait_until, now() + make_interval(secs => ${waitMs}::float8 / 1000))
    WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND status IN ('RECEIVED','WAITING')`;
}

/** Bounded applications, then DEAD with a ticket; the raw event stays. Returns the status afterwards. */
export async function recordApplyFailure(
  ledger: Ledger,
  row: { tenantId: string; inboxId: string },
  code: string,
  limits: { maxFailures: number; backoffMs: number },
): Promise<string | undefined> {
  const [after] = await ledger.sql<{ status: string }[]>`
    WITH u AS (
      UPDATE webhook_inbox SET failures = failures + 1, outcome = ${code},
        status = CASE WHEN failures + 1 >= ${limits.maxFailures} THEN 'DEAD' ELSE status END,
        due_at = CASE WHEN failures + 1 >= ${limits.maxFailures} THEN NULL
          ELSE now() + make_interval(secs => ${limits.backoffMs}::float8 / 1000) END
      WHERE tenant_id = ${row.tenantId} AND inbox_id = ${row.inboxId} AND status IN ('RECEIVED','WAITING')
      RETURNING tenant_id, inbox_id, status),
    t AS (
      INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
      SELECT u.tenant_id, gen_random_uuid(), 'dead-letter', 'inbox', u.inbox_id::text, n.ticket_owners ->> 'dead-letter', ${code},
        now() + make_interval(mins => COALESCE((n.thresholds ->> 'dead-letter')::int, 60))
      FROM u JOIN tenant n ON n.tenant_id = u.tenant_id WHERE u.status = 'DEAD'
      ON CONFLICT DO NOTHING)
    SELECT status FROM u`;
  return after?.status;
}
