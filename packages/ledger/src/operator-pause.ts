import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { checkReason } from "./reason.js";
import { openTicket } from "./tickets.js";

/** How a connection stands after somebody paused it. */
export interface PauseStanding {
  /** null: until somebody resumes it. */
  pausedUntil: string | null;
  /** Of the pause in force, which may be an older one without end. */
  reason: string;
}

/**
 * A person pauses a connection: until `until` (an instant), for `forMs`, or, where neither is given, until somebody
 * resumes it, which opens an owned ticket. Never shortens a pause; one without end keeps its reason. Throws not-found,
 * `reason-missing`, `reason-unsuitable`, and `pause-over` for an instant that has passed.
 */
export async function pauseByPerson(
  ledger: Ledger,
  pause: { tenantId: string; connectionId: string; who: string; why: string; forMs?: number; until?: string },
): Promise<PauseStanding> {
  const { tenantId, connectionId, who, why, forMs, until } = pause;
  checkReason(who, why);
  const reason = `person:${who}: ${why}`;
  return await ledger.sql.begin(async (sql) => {
    const [asked] = await sql<{ over: boolean }[]>`
      SELECT COALESCE(${until ?? null}::timestamptz <= now(), false) AS over`;
    if (asked?.over === true) throw new PlanRefusedError("pause-over", "the pause would end in the past");
    const [row] = await sql<{ pausedUntil: string | null; reason: string }[]>`
      UPDATE provider_connection SET
        pause_reason = CASE WHEN paused_until = 'infinity' THEN pause_reason ELSE ${reason} END,
        paused_until = GREATEST(paused_until, ${until ?? null}::timestamptz,
          now() + make_interval(secs => ${forMs ?? null}::float8 / 1000),
          CASE WHEN ${until === undefined && forMs === undefined} THEN 'infinity'::timestamptz END)
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}
      RETURNING CASE WHEN isfinite(paused_until) THEN paused_until END AS "pausedUntil", COALESCE(pause_reason, ${reason}) AS reason`;
    if (row === undefined) throw new NotFoundError("connection");
    if (row.pausedUntil === null) {
      await openTicket(sql, {
        tenantId,
        kind: "connection-paused",
        subjectKind: "connection",
        subjectId: connectionId,
        reason: row.reason,
      });
    }
    return row;
  });
}
