import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { getInboxEvent, type InboxFilter, type InboxState, inboxWhere } from "./inbox-read.js";
import { checkReason } from "./reason.js";

/** What may be replayed: events that nobody applies by themselves any more. */
export const replayable: readonly InboxState[] = ["QUARANTINED", "DEAD", "CONFLICT"];

/**
 * Makes events due again, those only that are a person's and whose bytes are still kept: they go through the same
 * conditional writes as at first, so that pressing twice changes nothing more. Returns their ids, at most `limit`, the
 * oldest first. Throws `reason-missing`.
 */
export async function replayInbox(
  ledger: Ledger,
  tenantId: string,
  filter: InboxFilter,
  options: { who: string; limit: number },
): Promise<string[]> {
  checkReason(options.who, "replay");
  const { sql } = ledger;
  const rows = await sql<{ inboxId: string }[]>`
    WITH chosen AS (
      SELECT i.tenant_id, i.inbox_id, i.received_at FROM webhook_inbox i
      WHERE ${inboxWhere(sql, tenantId, filter)} AND i.status IN ('QUARANTINED','DEAD','CONFLICT')
        AND EXISTS (SELECT 1 FROM webhook_body b WHERE b.tenant_id = i.tenant_id AND b.inbox_id = i.inbox_id AND b.received_at = i.received_at)
      ORDER BY i.inbox_id LIMIT ${options.limit} FOR UPDATE OF i SKIP LOCKED)
    UPDATE webhook_inbox i SET status = 'RECEIVED', due_at = now(), wait_until = NULL, applied_at = NULL, failures = 0, dispatches = 0,
      replays = i.replays + 1, replayed_by = ${options.who}
    FROM chosen c WHERE i.tenant_id = c.tenant_id AND i.inbox_id = c.inbox_id AND i.received_at = c.received_at
      AND i.status IN ('QUARANTINED','DEAD','CONFLICT')
    RETURNING i.inbox_id AS "inboxId"`;
  return rows.map((row) => row.inboxId).sort();
}

/**
 * Ends an event that nobody will apply; who and why stay on the row, and its tickets are closed. Throws not-found,
 * `reason-missing`, `reason-unsuitable`, and `event-is-settled` where it is not a person's.
 */
export async function discardInbox(
  ledger: Ledger,
  discard: { tenantId: string; inboxId: string; who: string; why: string },
): Promise<void> {
  const { tenantId, inboxId, who, why } = discard;
  checkReason(who, why);
  await ledger.sql.begin(async (sql) => {
    const [discarded] = await sql<{ subject: string }[]>`
      UPDATE webhook_inbox SET status = 'DISCARDED', due_at = NULL, discarded_by = ${who}, discard_reason = ${why}
      WHERE tenant_id = ${tenantId} AND inbox_id = ${inboxId} AND status IN ('QUARANTINED','DEAD','CONFLICT')
      RETURNING inbox_id::text AS subject`;
    if (discarded !== undefined) {
      await sql`
        UPDATE ticket SET resolved_at = now(), resolved_by = ${`person:${who}`}, resolution = ${`event discarded: ${why}`}
        WHERE tenant_id = ${tenantId} AND subject_kind = 'inbox' AND subject_id = ${discarded.subject} AND resolved_at IS NULL`;
      return;
    }
    const event = await getInboxEvent(ledger, tenantId, inboxId);
    if (event === undefined) throw new NotFoundError("event");
    throw new PlanRefusedError(
      "event-is-settled",
      `only ${replayable.join(", ")} events are discarded; this one is ${event.status}`,
      { eventStatus: event.status },
    );
  });
}
