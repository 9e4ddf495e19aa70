import { type AnySql, type Ledger, run, type TransactionSql } from "./database.js";
import { type InboxRow, lockInbox, quarantineInbox } from "./inbox-settle.js";
import { recordShown } from "./shown-by.js";
import { lockSigning, moveSigning, readSigning, type SigningKey } from "./signing.js";
import { openStatuses, type SigningStatus } from "./signing-table.js";
import { conflict, leaveUnbound, tell } from "./tell-event.js";
import { openTicket } from "./tickets.js";
import { finishWork, type WorkItem } from "./work.js";

const open = openStatuses.map((status) => `'${status}'`).join(", ");

/** Subject and dedupe key of a poll: of a request, or of an event that only hints. */
const subjectOf = {
  request: (connectionId: string, providerRef: string): string => `request/${connectionId}/${providerRef}`,
  hint: (inboxId: string): string => `hint/${inboxId}`,
};

const scheduleStatement = `WITH due AS (
    SELECT s.tenant_id, s.connection_id, s.provider_ref FROM contract_signing s
    WHERE s.asked_at <= now() - make_interval(secs => $2::float8 / 1000) AND s.status IN (${open})
    ORDER BY s.asked_at LIMIT $1::int FOR UPDATE SKIP LOCKED),
  u AS (
    UPDATE contract_signing s SET asked_at = now() FROM due
    WHERE s.tenant_id = due.tenant_id AND s.connection_id = due.connection_id AND s.provider_ref = due.provider_ref
    RETURNING s.tenant_id, s.connection_id, s.provider_ref)
  INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after)
  SELECT tenant_id, gen_random_uuid(), 'poll', 'request/' || connection_id || '/' || provider_ref,
    'request/' || connection_id || '/' || provider_ref, now() FROM u
  ON CONFLICT DO NOTHING RETURNING 1`;

/**
 * Silence is not peace (DESIGN §7): leaves a `poll` item for every request that is not over and of which nothing was told
 * or asked for `everyMs`. Returns how many.
 */
export async function schedulePolls(ledger: Ledger, limit: number, everyMs: number): Promise<number> {
  return (await run<object>(ledger.sql, scheduleStatement, [limit, everyMs])).length;
}

/**
 * All requests of a connection that are not over and of which nothing was heard for `quietMs` are asked about as soon as
 * the connection's rate allows: after an outage, or where events are known to be missing.
 */
export async function catchUp(
  sql: AnySql,
  scope: { tenantId: string; connectionId: string },
  quietMs = 0,
): Promise<number> {
  const result = await sql`
    UPDATE contract_signing SET asked_at = to_timestamp(0)
    WHERE tenant_id = ${scope.tenantId} AND connection_id = ${scope.connectionId}
      AND status IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED')
      AND asked_at > to_timestamp(0) AND asked_at <= now() - make_interval(secs => ${quietMs}::float8 / 1000)`;
  return result.count;
}

/** The provider is asked what an event of this row is about. In the transaction that says that it waits for that. */
export async function askAbout(sql: AnySql, inbox: InboxRow): Promise<void> {
  const subject = subjectOf.hint(inbox.inboxId);
  await sql`
    INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after)
    VALUES (${inbox.tenantId}, gen_random_uuid(), 'poll', ${subject}, ${subject}, now())
    ON CONFLICT DO NOTHING`;
}

export interface PollSubject {
  key: SigningKey;
  status: SigningStatus | null;
  /** How long the row has stood, ms: a lookup may lag behind its making. */
  ageMs: number;
  /** The event that only hinted, and whether its wait for a binding has passed. */
  hint?: { inboxId: string; waitPassed: boolean };
}

/** Whose ticket it is where a poll fails again and again: the event's that hinted, else the connection's. */
export function pollAbout(item: WorkItem): { subjectKind: "inbox" | "connection"; subjectId: string } {
  const [kind = "", id = ""] = item.subjectId.split("/");
  return { subjectKind: kind === "hint" ? "inbox" : "connection", subjectId: id };
}

/** What a poll asks about; undefined where nobody needs to ask any more. */
export async function readPoll(ledger: Ledger, item: WorkItem): Promise<PollSubject | undefined> {
  const [kind, ...rest] = item.subjectId.split("/");
  if (kind === "hint") return await readHint(ledger, item.tenantId, rest.join("/"));
  const [connectionId = "", ...ref] = rest;
  const key = { tenantId: item.tenantId, connectionId, providerRef: ref.join("/") };
  const [row] = await ledger.sql<{ status: SigningStatus; ageMs: number }[]>`
    SELECT status, (EXTRACT(EPOCH FROM now() - created_at) * 1000)::float8 AS "ageMs" FROM contract_signing
    WHERE tenant_id = ${key.tenantId} AND connection_id = ${key.connectionId} AND provider_ref = ${key.providerRef}
      AND status IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED')`;
  return row === undefined ? undefined : { key, ...row };
}

async function readHint(ledger: Ledger, tenantId: string, inboxId: string): Promise<PollSubject | undefined> {
  const [row] = await ledger.sql<
    { connectionId: string; providerRef: string; waitPassed: boolean; status: SigningStatus | null; ageMs: number }[]
  >`SELECT i.connection_id AS "connectionId", i.provider_ref AS "providerRef", COALESCE(i.wait_until <= now(), false) AS "waitPassed",
      s.status, (EXTRACT(EPOCH FROM now() - i.received_at) * 1000)::float8 AS "ageMs"
    FROM webhook_inbox i
    LEFT JOIN contract_signing s ON s.tenant_id = i.tenant_id AND s.connection_id = i.connection_id AND s.provider_ref = i.provider_ref
    WHERE i.tenant_id = ${tenantId} AND i.inbox_id = ${inboxId} AND i.status IN ('RECEIVED','WAITING') AND i.provider_ref IS NOT NULL`;
  if (row === undefined) return undefined;
  const { connectionId, providerRef, waitPassed, status, ageMs } = row;
  return { key: { tenantId, connectionId, providerRef }, status, ageMs, hint: { inboxId, waitPassed } };
}

/** What the provider's own record said, in our words; `operationId` only where it names this tenant, too. */
export type Polled =
  | { kind: "found"; status: SigningStatus; operationId?: string }
  | { kind: "not-found" }
  /** Nothing can be asked here, now or later. */
  | { kind: "unreadable"; reason: string };

export type PollApplied =
  | { kind: "applied" | "no-op" | "conflict" | "waiting" | "quarantined" | "unreadable"; evidenceFor?: string }
  | { kind: "gone" };

/**
 * Applies what a poll found in the transaction that ends its work item, through the same conditional UPDATE as an event.
 * `gone` where the item's lease is another's, the event was settled meanwhile, or there was nothing to ask about.
 */
export async function applyPolled(
  ledger: Ledger,
  item: WorkItem,
  subject: PollSubject | undefined,
  polled: Polled,
  eventWaitMs: number,
): Promise<PollApplied> {
  return await ledger.sql.begin(async (sql): Promise<PollApplied> => {
    if (!(await finishWork(sql, item)) || subject === undefined) return { kind: "gone" };
    return subject.hint === undefined
      ? await applyToRequest(sql, subject, polled)
      : await applyToHint(sql, { tenantId: item.tenantId, inboxId: subject.hint.inboxId }, subject, polled, {
          eventWaitMs,
          waitPassed: subject.hint.waitPassed,
        });
  });
}

async function applyToHint(
  sql: TransactionSql,
  inbox: InboxRow,
  { key }: PollSubject,
  polled: Polled,
  wait: { eventWaitMs: number; waitPassed: boolean },
): Promise<PollApplied> {
  if (polled.kind !== "found") {
    if (!(await lockInbox(sql, inbox))) return { kind: "gone" };
    if (polled.kind === "not-found") return await leaveUnbound(sql, inbox, wait);
    await quarantineInbox(sql, inbox, polled.reason);
    return { kind: "quarantined" };
  }
  const row = await lockSigning(sql, key);
  if (!(await lockInbox(sql, inbox))) return { kind: "gone" };
  const evidence = await recordShown(sql, shownBy(key, polled), row);
  if (evidence === "refused") return await conflict(sql, inbox, "reference-of-another-operation");
  const withEvidence = evidence === undefined ? {} : { evidenceFor: evidence };
  // A draft is bound by the evidence itself.
  const bound = evidence === undefined ? row : await readSigning(sql, key);
  if (bound === undefined || bound.operationId === null)
    return { ...(await leaveUnbound(sql, inbox, wait)), ...withEvidence };
  return { ...(await tell(sql, inbox, key, polled.status)), ...withEvidence };
}

const shownBy = (key: SigningKey, polled: { status: SigningStatus; operationId?: string }) => ({
  key,
  status: polled.status,
  operationId: polled.operationId,
  source: "lookup" as const,
  actor: "poll",
  details: { status: polled.status },
});

async function applyToRequest(sql: TransactionSql, { key }: PollSubject, polled: Polled): Promise<PollApplied> {
  if (polled.kind === "unreadable") return { kind: "unreadable" };
  const row = await lockSigning(sql, key);
  const subject = row.operationId ?? undefined;
  if (polled.kind === "not-found") {
    await ticketAbout(sql, key, subject, "provider-knows-no-such-request");
    return { kind: "conflict" };
  }
  const evidence = await recordShown(sql, shownBy(key, polled), row);
  if (evidence === "refused") {
    await ticketAbout(sql, key, subject, "reference-of-another-operation");
    return { kind: "conflict" };
  }
  const withEvidence = evidence === undefined ? {} : { evidenceFor: evidence };
  const moved = await moveSigning(sql, key, polled.status);
  if (moved.kind === "conflict") await ticketAbout(sql, key, subject, moved.outcome);
  if (moved.kind === "applied") await suspectEndpoints(sql, key);
  return { kind: moved.kind, ...withEvidence };
}

const ticketAbout = async (
  sql: TransactionSql,
  key: SigningKey,
  operationId: string | undefined,
  reason: string,
): Promise<void> =>
  openTicket(sql, {
    tenantId: key.tenantId,
    kind: "signing-conflict",
    subjectKind: operationId === undefined ? "connection" : "operation",
    subjectId: operationId ?? key.connectionId,
    reason,
  });

/** The provider has moved on and no event has said so yet: where none comes in time, somebody must look at the endpoint. */
async function suspectEndpoints(sql: TransactionSql, key: SigningKey): Promise<void> {
  await sql`
    UPDATE webhook_endpoint SET suspect_since = now()
    WHERE tenant_id = ${key.tenantId} AND connection_id = ${key.connectionId} AND disabled_at IS NULL AND suspect_since IS NULL
      AND (last_verified_at IS NULL OR last_verified_at < now() - interval '2 minutes')`;
}
