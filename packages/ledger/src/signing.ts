import type { Ledger } from "./database.js";
import { guardStates, sqlState } from "./errors.js";
import { recordEvidence } from "./evidence.js";
import { settleInbox, waitForBinding } from "./inbox.js";
import { openTicket } from "./tickets.js";

/** What the provider says of a request, over its life. */
export const signingStatuses = [
  "STAGED",
  "SENT",
  "VIEWED",
  "PARTIALLY_SIGNED",
  "COMPLETED",
  "DECLINED",
  "VOIDED",
  "EXPIRED",
  /** A staged one that was thrown away: nobody was ever mailed. */
  "DISCARDED",
] as const;
export type SigningStatus = (typeof signingStatuses)[number];

const ends: readonly SigningStatus[] = ["COMPLETED", "DECLINED", "VOIDED", "EXPIRED", "DISCARDED"];

/** From which statuses an event may move the row: the condition of its UPDATE. */
export const movesFrom: Record<SigningStatus, readonly SigningStatus[]> = {
  STAGED: [],
  SENT: ["STAGED"],
  VIEWED: ["STAGED", "SENT"],
  PARTIALLY_SIGNED: ["STAGED", "SENT", "VIEWED"],
  COMPLETED: ["STAGED", "SENT", "VIEWED", "PARTIALLY_SIGNED"],
  DECLINED: ["STAGED", "SENT", "VIEWED", "PARTIALLY_SIGNED"],
  VOIDED: ["STAGED", "SENT", "VIEWED", "PARTIALLY_SIGNED"],
  EXPIRED: ["STAGED", "SENT", "VIEWED", "PARTIALLY_SIGNED"],
  DISCARDED: ["STAGED"],
};

/** What the provider last said of a reference; undefined where it has said nothing. */
export async function signingStatusOf(
  ledger: Ledger,
  key: { tenantId: string; connectionId: string; providerRef: string },
): Promise<SigningStatus | undefined> {
  const [row] = await ledger.sql<{ status: SigningStatus | null }[]>`
    SELECT status FROM contract_signing
    WHERE tenant_id = ${key.tenantId} AND connection_id = ${key.connectionId} AND provider_ref = ${key.providerRef}`;
  return row?.status ?? undefined;
}

/** What zero rows meant: the same or an older story is a no-op, another end is a conflict. Pure. */
export function explainMiss(current: SigningStatus, event: SigningStatus): "no-op" | "conflict" {
  return ends.includes(current) && ends.includes(event) && current !== event ? "conflict" : "no-op";
}

export interface EventToApply {
  tenantId: string;
  inboxId: string;
  connectionId: string;
  providerRef: string;
  /** undefined: documented, but without meaning for the status. */
  status?: SigningStatus;
  /** Our own metadata, when the event carries it: evidence on that operation. */
  operationId?: string;
  /** Its id is derived: it may only hint. */
  weak: boolean;
  eventType: string;
  /** How long an unmapped reference is waited for, ms, and whether that has passed. */
  eventWaitMs: number;
  waitPassed: boolean;
}

export type Application =
  | { kind: "applied" | "no-op" | "conflict" | "waiting" | "quarantined"; evidenceFor?: string }
  /** Somebody else settled the row meanwhile. */
  | { kind: "gone" };

/**
 * Applies a verified event in one transaction: evidence for an operation first, then the condition pushed into the
 * UPDATE of the signing row. Nothing is read, compared and written; zero rows mean look.
 */
export async function applyEvent(ledger: Ledger, event: EventToApply): Promise<Application> {
  return await ledger.sql.begin(async (sql): Promise<Application> => {
    const [mine] = await sql`
      SELECT 1 FROM webhook_inbox WHERE tenant_id = ${event.tenantId} AND inbox_id = ${event.inboxId}
        AND status IN ('RECEIVED','WAITING') FOR UPDATE SKIP LOCKED`;
    if (mine === undefined) return { kind: "gone" };
    // Both this and the confirm first upsert the signing row: its lock orders them, so no event stays beside a bound one.
    const [row] = await sql<{ operation_id: string | null; status: SigningStatus | null }[]>`
      INSERT INTO contract_signing AS s (tenant_id, connection_id, provider_ref)
      VALUES (${event.tenantId}, ${event.connectionId}, ${event.providerRef})
      ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE SET updated_at = now()
      RETURNING operation_id, status`;
    const evidence = await evidenceFrom(sql, event, row ?? { operation_id: null, status: null });
    const inbox = { tenantId: event.tenantId, inboxId: event.inboxId };
    if (evidence === "refused") {
      await settleInbox(sql, inbox, "CONFLICT", "reference-of-another-operation");
      await openTicket(sql, {
        tenantId: event.tenantId,
        kind: "signing-conflict",
        subjectKind: "inbox",
        subjectId: event.inboxId,
        reason: "reference-of-another-operation",
      });
      return { kind: "conflict" };
    }
    const withEvidence = evidence === undefined ? {} : { evidenceFor: evidence };
    if (row === undefined || row.operation_id === null) {
      return { ...(await leaveUnbound(sql, event)), ...withEvidence };
    }
    return { ...(await moveStatus(sql, event)), ...withEvidence };
  });
}

type Tx = Parameters<Parameters<Ledger["sql"]["begin"]>[1]>[0];

/** Metadata of ours makes the event evidence on that operation, of this tenant and this connection only. */
async function evidenceFrom(
  sql: Tx,
  event: EventToApply,
  bound: { operation_id: string | null; status: SigningStatus | null },
): Promise<string | "refused" | undefined> {
  // A draft of ours that is more than staged now was sent: evidence although only the first event carries our metadata.
  const wasDraft = bound.status === "STAGED" && event.status !== undefined && event.status !== "STAGED";
  const operationId = event.operationId ?? (wasDraft ? (bound.operation_id ?? undefined) : undefined);
  if (operationId === undefined || event.weak || (bound.operation_id === operationId && !wasDraft)) return undefined;
  const [operation] = await sql<{ known: boolean }[]>`
    SELECT EXISTS (SELECT 1 FROM operation_reference r WHERE r.tenant_id = o.tenant_id AND r.connection_id = o.connection_id
        AND r.provider_ref = ${event.providerRef} AND r.operation_id = o.operation_id AND r.role <> 'draft') AS known
    FROM signing_operation o WHERE o.tenant_id = ${event.tenantId} AND o.operation_id = ${operationId}
      AND o.connection_id = ${event.connectionId} AND o.action = 'SEND'`;
  // Copied metadata of somebody else's request, or another connection's: not evidence for anything of ours.
  if (operation === undefined || operation.known) return undefined;
  try {
    await sql.savepoint(async (inner) => {
      await recordEvidence(inner, {
        tenantId: event.tenantId,
        operationId,
        providerRef: event.providerRef,
        role: event.status === "STAGED" ? "draft" : "evidence",
        source: "webhook",
        actor: "webhook-apply",
        reason: event.operationId === undefined ? "event-of-our-draft" : "event-with-our-metadata",
        details: { inboxId: event.inboxId, eventType: event.eventType, status: event.status ?? null },
      });
    });
  } catch (error) {
    if (sqlState(error) === guardStates.referenceOfAnotherOperation) return "refused";
    throw error;
  }
  return operationId;
}

async function leaveUnbound(sql: Tx, event: EventToApply): Promise<Application> {
  const inbox = { tenantId: event.tenantId, inboxId: event.inboxId };
  if (!event.waitPassed) {
    await waitForBinding(sql, inbox, event.eventWaitMs);
    return { kind: "waiting" };
  }
  await settleInbox(sql, inbox, "QUARANTINED", "unmapped-reference");
  await openTicket(sql, {
    tenantId: event.tenantId,
    kind: "quarantine",
    subjectKind: "inbox",
    subjectId: event.inboxId,
    reason: "unmapped-reference",
  });
  return { kind: "quarantined" };
}

/** A FINALIZE that looks at its target from time to time need not wait for its next look. */
async function wakeThoseThatWait(sql: Tx, event: EventToApply): Promise<void> {
  await sql`
    UPDATE signing_operation o SET due_at = now(), not_before = NULL FROM contract_signing s
    WHERE s.tenant_id = ${event.tenantId} AND s.connection_id = ${event.connectionId} AND s.provider_ref = ${event.providerRef}
      AND o.tenant_id = s.tenant_id AND o.target_operation_id = s.operation_id AND o.action = 'FINALIZE' AND o.state = 'UNKNOWN'
      AND o.target_ref = s.provider_ref`;
}

async function moveStatus(sql: Tx, event: EventToApply): Promise<Application> {
  const inbox = { tenantId: event.tenantId, inboxId: event.inboxId };
  if (event.status === undefined) {
    await settleInbox(sql, inbox, "NO_OP", "no-meaning-for-status");
    return { kind: "no-op" };
  }
  const moved = await sql`
    UPDATE contract_signing SET status = ${event.status}, status_at = now(), updated_at = now()
    WHERE tenant_id = ${event.tenantId} AND connection_id = ${event.connectionId} AND provider_ref = ${event.providerRef}
      AND status = ANY(string_to_array(${movesFrom[event.status].join(",")}, ','))`;
  if (moved.count === 1) {
    if (ends.includes(event.status)) await wakeThoseThatWait(sql, event);
    await settleInbox(sql, inbox, "APPLIED", event.status);
    return { kind: "applied" };
  }
  const [current] = await sql<{ status: SigningStatus | null }[]>`
    SELECT status FROM contract_signing
    WHERE tenant_id = ${event.tenantId} AND connection_id = ${event.connectionId} AND provider_ref = ${event.providerRef}`;
  if (current?.status == null || explainMiss(current.status, event.status) === "no-op") {
    await settleInbox(sql, inbox, "NO_OP", `already-${(current?.status ?? "unbound").toLowerCase()}`);
    return { kind: "no-op" };
  }
  await settleInbox(sql, inbox, "CONFLICT", `${event.status.toLowerCase()}-after-${current.status.toLowerCase()}`);
  await openTicket(sql, {
    tenantId: event.tenantId,
    kind: "signing-conflict",
    subjectKind: "inbox",
    subjectId: event.inboxId,
    reason: `${event.status.toLowerCase()}-after-${current.status.toLowerCase()}`,
  });
  return { kind: "conflict" };
}
