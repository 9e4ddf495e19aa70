import type { AnySql, Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { checkReason } from "./reason.js";

/** What a person may be asked to look at. Every tenant names an owner team for each (the database insists). */
export const ticketKinds = [
  /** An operation whose evidence conflicts or that nobody can prove. */
  "needs-review",
  /** A second request exists, or one that was taken as failed. */
  "duplicate",
  /** A verified webhook that can't be interpreted. */
  "quarantine",
  /** Work that failed too often. */
  "dead-letter",
  /** An operation that has waited longer than its tenant's threshold. */
  "aged",
  /** A credential or quota problem pauses the connection. */
  "connection-paused",
  /** The provider told two stories about one request. */
  "signing-conflict",
  /** A VOID was given up because its replacement failed. */
  "void-retired",
  /** A webhook endpoint that is silent, refuses its sender, or was out of reach. */
  "endpoint-silent",
] as const;
/** Minutes until a ticket of the kind is due, and when an operation has aged (`age-attempts` is a count). */
export const defaultThresholds = {
  "needs-review": 240,
  duplicate: 240,
  quarantine: 240,
  "dead-letter": 60,
  aged: 60,
  "connection-paused": 30,
  "signing-conflict": 240,
  "void-retired": 1_440,
  "endpoint-silent": 60,
  /** Since the first attempt, while nobody knows the outcome. */
  "age-unknown": 30,
  /** Since the plan, though nothing stands in the way but pauses and holds. */
  "age-planned": 60,
  /** Since the plan, while it waits for another operation. */
  "age-waiting": 1_440,
  /** Since the first attempt, while the provider declines. */
  "age-declined": 60,
  /** Attempts. */
  "age-attempts": 10,
  /** Since an event came in that nobody has applied yet. */
  "age-received": 15,
  /** Since a request was sent, or a change found, of which no webhook has told. */
  "age-endpoint": 60,
} as const;
export type ThresholdName = keyof typeof defaultThresholds;

export type TicketKind = (typeof ticketKinds)[number];

export interface NewTicket {
  tenantId: string;
  kind: TicketKind;
  subjectKind: "operation" | "inbox" | "connection" | "endpoint";
  subjectId: string;
  reason: string;
  /** Ids, codes and counts. */
  details?: Record<string, string | number | boolean | null>;
}

/** Opens a ticket with the tenant's owner and clock; at most one open per kind and subject. */
export async function openTicket(sql: AnySql, ticket: NewTicket): Promise<void> {
  await sql`
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, details, due_at)
    SELECT tenant_id, gen_random_uuid(), ${ticket.kind}, ${ticket.subjectKind}, ${ticket.subjectId},
      ticket_owners ->> ${ticket.kind}, ${ticket.reason}, ${sql.json(ticket.details ?? {})}::jsonb,
      now() + make_interval(mins => COALESCE((thresholds ->> ${ticket.kind})::int, 60))
    FROM tenant WHERE tenant_id = ${ticket.tenantId}
    ON CONFLICT DO NOTHING`;
}

export interface Ticket {
  ticketId: string;
  kind: string;
  subjectKind: string;
  subjectId: string;
  owner: string;
  reason: string;
  openedAt: string;
  dueAt: string;
  resolvedAt: string | null;
  resolution: string | null;
  resolvedBy: string | null;
}

const columns = (sql: AnySql) => sql`
  ticket_id AS "ticketId", kind, subject_kind AS "subjectKind", subject_id AS "subjectId", owner, reason,
  opened_at AS "openedAt", due_at AS "dueAt", resolved_at AS "resolvedAt", resolution, resolved_by AS "resolvedBy"`;

export interface TicketFilter {
  /** `open` when left out. */
  status?: "open" | "closed" | "all";
  kind?: string;
  /** Only those about this operation, event, connection or endpoint. */
  subjectId?: string;
  /** Ticket id after which to go on. */
  cursor?: string;
}

/** Tickets of a tenant, one page: the most urgent first, or of the closed ones the last closed first. */
export async function listTickets(
  ledger: Ledger,
  tenantId: string,
  limit = 100,
  filter: TicketFilter = {},
): Promise<Ticket[]> {
  const { sql } = ledger;
  const { status = "open", kind = null, subjectId = null, cursor = null } = filter;
  const closed = status === "closed";
  const key = closed ? sql`(resolved_at, ticket_id)` : sql`(due_at, ticket_id)`;
  const after = sql`(SELECT ${closed ? sql`resolved_at` : sql`due_at`}, ticket_id FROM ticket WHERE tenant_id = ${tenantId} AND ticket_id = ${cursor})`;
  return await sql<Ticket[]>`
    SELECT ${columns(sql)} FROM ticket
    WHERE tenant_id = ${tenantId} AND (${status} = 'all' OR (resolved_at IS NOT NULL) = ${closed})
      AND (${kind}::text IS NULL OR kind = ${kind}) AND (${subjectId}::text IS NULL OR subject_id = ${subjectId})
      ${cursor === null ? sql`` : sql`AND ${key} ${closed ? sql`<` : sql`>`} ${after}`}
    ORDER BY ${closed ? sql`resolved_at DESC, ticket_id DESC` : sql`due_at, ticket_id`} LIMIT ${limit}`;
}

/** One ticket of a tenant; undefined for another tenant's, exactly as for none. */
export async function getTicket(ledger: Ledger, tenantId: string, ticketId: string): Promise<Ticket | undefined> {
  const [row] = await ledger.sql<Ticket[]>`
    SELECT ${columns(ledger.sql)} FROM ticket WHERE tenant_id = ${tenantId} AND ticket_id = ${ticketId}`;
  return row;
}

/**
 * Closes a ticket with a resolution. Throws not-found, `ticket-closed`, `reason-missing`, `reason-unsuitable`, and
 * `ticket-is-decided` where closing would hide a decision that is still open: a duplicate, or a review whose operation is
 * in NEEDS_REVIEW (`decideDuplicate`, `review`).
 */
export async function closeTicket(
  ledger: Ledger,
  closing: { tenantId: string; ticketId: string; who: string; resolution: string },
): Promise<void> {
  const { tenantId, ticketId, who, resolution } = closing;
  checkReason(who, resolution);
  const closed = await ledger.sql`
    UPDATE ticket t SET resolved_at = now(), resolution = ${resolution}, resolved_by = ${`person:${who}`}
    WHERE tenant_id = ${tenantId} AND ticket_id = ${ticketId} AND resolved_at IS NULL AND kind <> 'duplicate'
      AND (kind <> 'needs-review' OR NOT EXISTS (
        SELECT 1 FROM signing_operation o WHERE o.tenant_id = t.tenant_id AND o.state = 'NEEDS_REVIEW'
          AND o.operation_id = CASE WHEN t.kind = 'needs-review' THEN t.subject_id::uuid END))`;
  if (closed.count === 1) return;
  const ticket = await getTicket(ledger, tenantId, ticketId);
  if (ticket === undefined) throw new NotFoundError("ticket");
  if (ticket.resolvedAt !== null) throw new PlanRefusedError("ticket-closed", "this ticket has been closed already");
  throw new PlanRefusedError("ticket-is-decided", `a ${ticket.kind} ticket is closed by deciding it`, {
    kind: ticket.kind,
  });
}

/** Closes a ticket; false where it was closed already or is not this tenant's. */
export async function resolveTicket(
  ledger: Ledger,
  tenantId: string,
  ticketId: string,
  by: string,
  resolution: string,
): Promise<boolean> {
  const result = await ledger.sql`
    UPDATE ticket SET resolved_at = now(), resolution = ${resolution}, resolved_by = ${by}
    WHERE tenant_id = ${tenantId} AND ticket_id = ${ticketId} AND resolved_at IS NULL`;
  return result.count === 1;
}
