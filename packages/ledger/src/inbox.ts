import { newId, sha256 } from "@countersign/runtime";
import { type Ledger, run } from "./database.js";
import { askAboutBound } from "./inbox-settle.js";

/** A verified delivery, before anything is made of it. */
export interface Delivery {
  tenantId: string;
  connectionId: string;
  endpointId: string;
  /** Which secret verified it. */
  secretId?: string;
  /** From what was signed; a derived one is flagged `weakId`. */
  providerEventId: string;
  weakId?: boolean;
  /** Not proven enough to be believed (its body is not authenticated, or its id is derived): the provider is asked first. */
  hint?: boolean;
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

/** How stale `last_verified_at` may be, so that a busy endpoint's row is not written by every delivery. */
const verifiedEvery = "interval '30 seconds'";

/**
 * $1: rows as JSON, bodies in base64. Inbox row, body and (where nobody can interpret it) ticket and poll: one statement,
 * one commit, for any number of deliveries. SKIP LOCKED: no delivery waits for another's note of who verified it.
 */
const statement = `WITH x AS (SELECT *, now() AS received_at FROM jsonb_to_recordset($1::text::jsonb) AS x(tenant_id text, inbox_id uuid,
    connection_id text, endpoint_id text, secret_id uuid, event_id text, digest text, quarantine text, event_type text, provider_ref text,
    operation_id uuid, flagged boolean, weak_id boolean, hint boolean, body text, key_id text)),
  i AS (
    INSERT INTO webhook_inbox (tenant_id, inbox_id, received_at, connection_id, endpoint_id, provider_event_id, body_sha256, status,
      event_type, provider_ref, operation_id, conflicting, weak_id, hint, due_at, outcome)
    SELECT tenant_id, inbox_id, received_at, connection_id, endpoint_id, event_id, decode(digest, 'base64'),
      CASE WHEN quarantine IS NULL THEN 'RECEIVED' ELSE 'QUARANTINED' END, event_type, provider_ref, operation_id,
      flagged OR (NOT weak_id AND (EXISTS (SELECT 1 FROM webhook_inbox o WHERE o.tenant_id = x.tenant_id AND o.connection_id = x.connection_id
          AND o.provider_event_id = x.event_id AND o.body_sha256 <> decode(x.digest, 'base64'))
        OR EXISTS (SELECT 1 FROM x o WHERE o.tenant_id = x.tenant_id AND o.connection_id = x.connection_id AND o.event_id = x.event_id
          AND o.digest <> x.digest))),
      weak_id, hint, CASE WHEN quarantine IS NULL THEN received_at END, quarantine
    FROM x
    ON CONFLICT (tenant_id, connection_id, provider_event_id, body_sha256) DO NOTHING
    RETURNING tenant_id, inbox_id, received_at, connection_id, provider_ref, status, conflicting, outcome),
  b AS (
    INSERT INTO webhook_body (tenant_id, inbox_id, received_at, bytes, key_id)
    SELECT i.tenant_id, i.inbox_id, i.received_at, decode(x.body, 'base64'), x.key_id FROM i JOIN x USING (inbox_id)),
  left_to_a_person AS (SELECT * FROM i WHERE status = 'QUARANTINED'),
  asked AS (${askAboutBound("left_to_a_person")}),
  t AS (
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
    SELECT i.tenant_id, gen_random_uuid(), 'quarantine', 'inbox', i.inbox_id::text, n.ticket_owners ->> 'quarantine', i.outcome,
      now() + make_interval(mins => (n.thresholds ->> 'quarantine')::int)
    FROM left_to_a_person i JOIN tenant n ON n.tenant_id = i.tenant_id
    ON CONFLICT DO NOTHING),
  secret AS (
    UPDATE webhook_secret s SET last_verified_at = now() FROM (
      SELECT endpoint_id, secret_id FROM webhook_secret v
      WHERE EXISTS (SELECT 1 FROM x WHERE x.endpoint_id = v.endpoint_id AND x.secret_id = v.secret_id)
        AND (v.last_verified_at IS NULL OR v.last_verified_at < now() - ${verifiedEvery})
      FOR UPDATE SKIP LOCKED) v
    WHERE s.endpoint_id = v.endpoint_id AND s.secret_id = v.secret_id),
  endpoint AS (
    UPDATE webhook_endpoint e SET last_verified_at = now(), suspect_since = NULL FROM (
      SELECT endpoint_id FROM webhook_endpoint v
      WHERE v.endpoint_id IN (SELECT endpoint_id FROM x)
        AND (v.last_verified_at IS NULL OR v.last_verified_at < now() - ${verifiedEvery} OR v.suspect_since IS NOT NULL)
      FOR UPDATE SKIP LOCKED) v
    WHERE e.endpoint_id = v.endpoint_id)
  SELECT inbox_id, status, conflicting FROM i`;

export const bodyAssociated = (tenantId: string, inboxId: string): string => `${tenantId}/webhook_body/${inboxId}`;

/** Stores one verified delivery, see {@link recordDeliveries}. */
export async function recordDelivery(ledger: Ledger, delivery: Delivery): Promise<Recorded> {
  const [recorded] = await recordDeliveries(ledger, [delivery]);
  return recorded ?? { kind: "duplicate" };
}

/**
 * Stores verified deliveries, all or none, in one commit; the answers in their order. Answer 2xx only after it resolved; on
 * any error answer 503 (law 8).
 */
export async function recordDeliveries(ledger: Ledger, deliveries: readonly Delivery[]): Promise<Recorded[]> {
  if (deliveries.length === 0) return [];
  const rows = await Promise.all(deliveries.map((delivery) => toRow(ledger, delivery)));
  const stored = await run<{ inbox_id: string; status: string; conflicting: boolean }>(ledger.sql, statement, [
    JSON.stringify(rows),
  ]);
  const byId = new Map(stored.map((row) => [row.inbox_id, row]));
  return rows.map(({ inbox_id }) => {
    const row = byId.get(inbox_id);
    if (row === undefined) return { kind: "duplicate" };
    return {
      kind: "stored",
      inboxId: row.inbox_id,
      quarantined: row.status === "QUARANTINED",
      conflicting: row.conflicting,
    };
  });
}

async function toRow(ledger: Ledger, delivery: Delivery) {
  const key = await ledger.tenantKey(delivery.tenantId);
  const inboxId = newId();
  return {
    tenant_id: delivery.tenantId,
    inbox_id: inboxId,
    connection_id: delivery.connectionId,
    endpoint_id: delivery.endpointId,
    secret_id: delivery.secretId,
    event_id: delivery.providerEventId,
    digest: sha256(delivery.body).toString("base64"),
    quarantine: delivery.quarantine,
    event_type: delivery.eventType,
    provider_ref: delivery.providerRef,
    operation_id: delivery.operationId,
    flagged: delivery.flagged === true,
    weak_id: delivery.weakId === true,
    hint: delivery.hint === true,
    body: key.seal(delivery.body, bodyAssociated(delivery.tenantId, inboxId)).toString("base64"),
    key_id: key.keyId,
  };
}

export interface InboxEntry {
  tenantId: string;
  inboxId: string;
  connectionId: string;
  endpointId: string;
  provider: string;
  scheme: string;
  providerEventId: string;
  status: string;
  failures: number;
  weakId: boolean;
  hint: boolean;
  waitUntilPassed: boolean;
  /** It names no request yet: nobody could read it when it came in. */
  unread: boolean;
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
      c.provider, e.scheme, i.provider_event_id AS "providerEventId", i.status, i.failures, i.weak_id AS "weakId", i.hint, COALESCE(i.wait_until <= now(), false) AS "waitUntilPassed",
      i.provider_ref IS NULL AS unread,
      b.bytes AS sealed
    FROM webhook_inbox i
    JOIN webhook_body b USING (tenant_id, inbox_id, received_at)
    JOIN provider_connection c ON c.tenant_id = i.tenant_id AND c.connection_id = i.connection_id
    JOIN webhook_endpoint e ON e.endpoint_id = i.endpoint_id
    WHERE i.tenant_id = ${tenantId} AND i.inbox_id = ${inboxId} AND i.status IN ('RECEIVED','WAITING')`;
  if (row === undefined) return undefined;
  const { sealed, ...entry } = row;
  const key = await ledger.tenantKey(tenantId);
  return { ...entry, body: key.open(sealed, bodyAssociated(tenantId, inboxId)) };
}
