import { applyOrdinary } from "./apply-ordinary.js";
import type { Ledger, TransactionSql } from "./database.js";
import { type InboxRow, lockInbox, nameRequest, waitForPoll } from "./inbox-settle.js";
import { askAbout } from "./polls.js";
import { recordShown } from "./shown-by.js";
import { lockSigning, readSigning, type SigningKey } from "./signing.js";
import type { SigningStatus } from "./signing-table.js";
import { type Application, conflict, leaveUnbound, tell } from "./tell-event.js";

export interface EventToApply {
  tenantId: string;
  inboxId: string;
  connectionId: string;
  providerRef: string;
  /** undefined: documented, but without meaning for the status. */
  status?: SigningStatus;
  /** Our own metadata, when the event carries it: evidence on that operation. */
  operationId?: string;
  /** Its sender or its id is not proven: the provider is asked first, and its answer is applied. */
  hint: boolean;
  eventType: string;
  /** How long an unmapped reference is waited for, ms, and whether that has passed. */
  eventWaitMs: number;
  waitPassed: boolean;
  /** Its row names no request: nobody could read it when it came in. */
  unread?: boolean;
}

/**
 * Applies a verified event in one transaction: evidence for an operation first, then the condition pushed into the
 * UPDATE of the signing row. Nothing is read, compared and written; zero rows mean look.
 */
export async function applyEvent(ledger: Ledger, event: EventToApply): Promise<Application> {
  const ordinary = await applyOrdinary(ledger, event);
  return ordinary ?? (await applyAny(ledger, event));
}

async function applyAny(ledger: Ledger, event: EventToApply): Promise<Application> {
  const inbox: InboxRow = { tenantId: event.tenantId, inboxId: event.inboxId };
  const key: SigningKey = {
    tenantId: event.tenantId,
    connectionId: event.connectionId,
    providerRef: event.providerRef,
  };
  return await ledger.sql.begin(async (sql): Promise<Application> => {
    if (event.hint) {
      if (!(await take(sql, inbox, event))) return { kind: "gone" };
      await askAbout(sql, inbox);
      await waitForPoll(sql, inbox, event.eventWaitMs);
      return { kind: "asking" };
    }
    // First the request, then the event, as binding does: neither waits for the other's second lock.
    const row = await lockSigning(sql, key);
    if (!(await take(sql, inbox, event))) return { kind: "gone" };
    const evidence = await recordShown(
      sql,
      {
        key,
        status: event.status,
        operationId: event.operationId,
        source: "webhook",
        actor: "webhook-apply",
        details: { inboxId: event.inboxId, eventType: event.eventType, status: event.status ?? null },
      },
      row,
    );
    if (evidence === "refused") return await conflict(sql, inbox, "reference-of-another-operation");
    const withEvidence = evidence === undefined ? {} : { evidenceFor: evidence };
    // A draft is bound by the evidence itself: what has just bound it need not wait for its reference.
    const bound = evidence === undefined ? row : await readSigning(sql, key);
    if (bound === undefined || bound.operationId === null)
      return { ...(await leaveUnbound(sql, inbox, event)), ...withEvidence };
    return { ...(await tell(sql, inbox, key, event.status)), operationId: bound.operationId, ...withEvidence };
  });
}

/** Locks the event, see `lockInbox`. */
async function take(sql: TransactionSql, inbox: InboxRow, event: EventToApply): Promise<boolean> {
  if (!(await lockInbox(sql, inbox))) return false;
  if (event.unread === true) await nameRequest(sql, inbox, event);
  return true;
}
