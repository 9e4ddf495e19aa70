import type { AnySql, Ledger } from "./database.js";
import { NotFoundError } from "./errors.js";
import { bodyAssociated } from "./inbox.js";
import type { SigningStatus } from "./signing-table.js";

/** Where an event stands: RECEIVED and WAITING are due, QUARANTINED, DEAD and CONFLICT are a person's, the rest is over. */
export const inboxStatuses = [
  "RECEIVED",
  "WAITING",
  "APPLIED",
  "NO_OP",
  "CONFLICT",
  "QUARANTINED",
  "DEAD",
  "DISCARDED",
] as const;
export type InboxState = (typeof inboxStatuses)[number];

/** An event as it is shown; its body is read apart. */
export interface InboxEvent {
  inboxId: string;
  connectionId: string;
  endpointId: string;
  providerEventId: string;
  eventType: string | null;
  providerRef: string | null;
  operationId: string | null;
  status: InboxState;
  outcome: string | null;
  /** Only a hint: the provider is asked before anything is applied. */
  hint: boolean;
  weakId: boolean;
  /** Stored beside another body under the same id, or with an unsigned id that differs from the signed one. */
  conflicting: boolean;
  failures: number;
  replays: number;
  replayedBy: string | null;
  discardedBy: string | null;
  discardReason: string | null;
  receivedAt: string;
  appliedAt: string | null;
  dueAt: string | null;
  /** Its raw bytes are still kept. */
  hasBody: boolean;
}

/** Which events; all that is left out matches. */
export interface InboxFilter {
  /** These events only. */
  ids?: readonly string[];
  status?: readonly InboxState[];
  connectionId?: string;
  endpointId?: string;
  eventType?: string;
  outcome?: string;
  providerRef?: string;
  /** ISO instants: received at or after, and before. */
  since?: string;
  until?: string;
}

const columns = (sql: AnySql) => sql`
  i.inbox_id AS "inboxId", i.connection_id AS "connectionId", i.endpoint_id AS "endpointId", i.provider_event_id AS "providerEventId",
  i.event_type AS "eventType", i.provider_ref AS "providerRef", i.operation_id AS "operationId", i.status, i.outcome, i.hint,
  i.weak_id AS "weakId", i.conflicting, i.failures, i.replays, i.replayed_by AS "replayedBy", i.discarded_by AS "discardedBy",
  i.discard_reason AS "discardReason", i.received_at AS "receivedAt", i.applied_at AS "appliedAt", i.due_at AS "dueAt",
  EXISTS (SELECT 1 FROM webhook_body b WHERE b.tenant_id = i.tenant_id AND b.inbox_id = i.inbox_id) AS "hasBody"`;

const inIds = (sql: AnySql, ids: readonly string[] | undefined) =>
  ids === undefined
    ? sql`true`
    : sql`i.inbox_id IN (SELECT value::uuid FROM jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb))`;

/** The filter as a condition on `i`. */
export const inboxWhere = (sql: AnySql, tenantId: string, filter: InboxFilter) => sql`
  i.tenant_id = ${tenantId}
  AND ${inIds(sql, filter.ids)}
  AND ${filter.status === undefined ? sql`true` : sql`i.status = ANY(string_to_array(${filter.status.join(",")}, ','))`}
  AND ${filter.connectionId === undefined ? sql`true` : sql`i.connection_id = ${filter.connectionId}`}
  AND ${filter.endpointId === undefined ? sql`true` : sql`i.endpoint_id = ${filter.endpointId}`}
  AND ${filter.eventType === undefined ? sql`true` : sql`i.event_type = ${filter.eventType}`}
  AND ${filter.outcome === undefined ? sql`true` : sql`i.outcome = ${filter.outcome}`}
  AND ${filter.providerRef === undefined ? sql`true` : sql`i.provider_ref = ${filter.providerRef}`}
  AND ${filter.since === undefined ? sql`true` : sql`i.received_at >= ${filter.since}::timestamptz`}
  AND ${filter.until === undefined ? sql`true` : sql`i.received_at < ${filter.until}::timestamptz`}`;

/** One page of a tenant's events, the newest first; `cursor` is the last id of the page before. */
export async function listInbox(
  ledger: Ledger,
  tenantId: string,
  filter: InboxFilter = {},
  page: { limit?: number; cursor?: string } = {},
): Promise<InboxEvent[]> {
  const { sql } = ledger;
  return await sql<InboxEvent[]>`
    SELECT ${columns(sql)} FROM webhook_inbox i
    WHERE ${inboxWhere(sql, tenantId, filter)} AND ${page.cursor === undefined ? sql`true` : sql`i.inbox_id < ${page.cursor}::uuid`}
    ORDER BY i.inbox_id DESC LIMIT ${page.limit ?? 100}`;
}

/** The events of the requests that are known for an operation, the oldest first, 200 at most. */
export async function listEventsOf(ledger: Ledger, tenantId: string, operationId: string): Promise<InboxEvent[]> {
  const { sql } = ledger;
  return await sql<InboxEvent[]>`
    SELECT ${columns(sql)} FROM operation_reference r
    JOIN webhook_inbox i ON i.tenant_id = r.tenant_id AND i.connection_id = r.connection_id AND i.provider_ref = r.provider_ref
    WHERE r.tenant_id = ${tenantId} AND r.operation_id = ${operationId}
    ORDER BY i.received_at LIMIT 200`;
}

/** One event; undefined for another tenant's, exactly as for none. */
export async function getInboxEvent(
  ledger: Ledger,
  tenantId: string,
  inboxId: string,
): Promise<InboxEvent | undefined> {
  const [row] = await ledger.sql<InboxEvent[]>`
    SELECT ${columns(ledger.sql)} FROM webhook_inbox i WHERE i.tenant_id = ${tenantId} AND i.inbox_id = ${inboxId}`;
  return row;
}

/** The raw bytes of an event, as they were verified; undefined once they are erased. Throws not-found. */
export async function readInboxBody(ledger: Ledger, tenantId: string, inboxId: string): Promise<Buffer | undefined> {
  const key = await ledger.tenantKey(tenantId);
  const [row] = await ledger.sql<{ sealed: Buffer | null }[]>`
    SELECT b.bytes AS sealed FROM webhook_inbox i LEFT JOIN webhook_body b USING (tenant_id, inbox_id, received_at)
    WHERE i.tenant_id = ${tenantId} AND i.inbox_id = ${inboxId}`;
  if (row === undefined) throw new NotFoundError("event");
  return row.sealed === null ? undefined : key.open(row.sealed, bodyAssociated(tenantId, inboxId));
}

/** An event with all that a dry run of its replay needs. */
export interface ReplayCandidate extends InboxEvent {
  provider: string;
  scheme: string;
  body: Buffer | undefined;
  /** The request that it speaks of, as it stands; null where it is unknown or not bound. */
  signingStatus: SigningStatus | null;
  bound: boolean;
  /** Which operation that request is; null where it is unknown or not bound. */
  boundTo: string | null;
  /** The operation that its reference was seen for, also while nothing is bound to it. */
  seenFor: string | null;
  /** `operationId` is a SEND of this tenant on this connection: the event is evidence for it. */
  namesOurs: boolean;
}

/** Events that match, the oldest first, with bodies and the state of their requests. */
export async function replayCandidates(
  ledger: Ledger,
  tenantId: string,
  filter: InboxFilter,
  page: { limit: number; after?: string },
): Promise<ReplayCandidate[]> {
  const { sql } = ledger;
  const key = await ledger.tenantKey(tenantId);
  const rows = await sql<(Omit<ReplayCandidate, "body"> & { sealed: Buffer | null })[]>`
    SELECT ${columns(sql)}, c.provider, e.scheme, b.bytes AS sealed, s.status AS "signingStatus", s.operation_id IS NOT NULL AS bound,
      s.operation_id AS "boundTo", r.operation_id AS "seenFor", EXISTS (SELECT 1 FROM signing_operation o WHERE o.tenant_id = i.tenant_id AND o.operation_id = i.operation_id
        AND o.connection_id = i.connection_id AND o.action = 'SEND') AS "namesOurs"
    FROM webhook_inbox i
    JOIN provider_connection c ON c.tenant_id = i.tenant_id AND c.connection_id = i.connection_id
    JOIN webhook_endpoint e ON e.endpoint_id = i.endpoint_id
    LEFT JOIN webhook_body b ON b.tenant_id = i.tenant_id AND b.inbox_id = i.inbox_id AND b.received_at = i.received_at
    LEFT JOIN contract_signing s ON s.tenant_id = i.tenant_id AND s.connection_id = i.connection_id AND s.provider_ref = i.provider_ref
    LEFT JOIN operation_reference r ON r.tenant_id = i.tenant_id AND r.connection_id = i.connection_id AND r.provider_ref = i.provider_ref
    WHERE ${inboxWhere(sql, tenantId, filter)}
      AND ${page.after === undefined ? sql`true` : sql`i.inbox_id > ${page.after}::uuid`}
    ORDER BY i.inbox_id LIMIT ${page.limit}`;
  return rows.map(({ sealed, ...row }) => ({
    ...row,
    body: sealed === null ? undefined : key.open(sealed, bodyAssociated(tenantId, row.inboxId)),
  }));
}
