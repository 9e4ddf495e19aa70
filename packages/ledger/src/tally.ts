import { type Ledger, run } from "./database.js";

/** Minutes that may still get moves: a transaction's `at` is its beginning, and none of ours lasts this long. */
const youngMinutes = 5;

/** How long minutes are kept after they have been added to the totals. */
const keptDays = 7;

const recount = `WITH moves AS (
    SELECT e.tenant_id, o.connection_id, date_trunc('minute', e.at) AS minute, o.action, COALESCE(e.from_state, 'none') AS from_state,
      e.to_state, count(*)::int AS count,
      COALESCE(sum(ms) FILTER (WHERE e.from_state = 'IN_FLIGHT'), 0)::bigint AS ms_sum,
      COALESCE(max(ms) FILTER (WHERE e.from_state = 'IN_FLIGHT'), 0)::bigint AS ms_max
    FROM operation_event e
    JOIN signing_operation o ON o.tenant_id = e.tenant_id AND o.operation_id = e.operation_id
    CROSS JOIN LATERAL (SELECT CASE WHEN e.from_state = 'IN_FLIGHT' THEN (
      SELECT round(extract(epoch FROM e.at - b.at) * 1000) FROM operation_event b
      WHERE b.tenant_id = e.tenant_id AND b.operation_id = e.operation_id AND b.seq < e.seq AND b.to_state = 'IN_FLIGHT'
      ORDER BY b.seq DESC LIMIT 1) END AS ms) AS call
    WHERE e.at >= (SELECT folded_until FROM tally_mark WHERE id = 1) AND e.to_state IS NOT NULL AND e.to_state IS DISTINCT FROM e.from_state
    GROUP BY 1, 2, 3, 4, 5, 6)
  INSERT INTO tally_minute (tenant_id, connection_id, minute, action, from_state, to_state, count, ms_sum, ms_max)
  SELECT tenant_id, connection_id, minute, action, from_state, to_state, count, ms_sum, ms_max FROM moves
  ON CONFLICT (minute, tenant_id, connection_id, action, from_state, to_state) DO UPDATE
    SET count = excluded.count, ms_sum = excluded.ms_sum, ms_max = excluded.ms_max
    WHERE (tally_minute.count, tally_minute.ms_sum) IS DISTINCT FROM (excluded.count, excluded.ms_sum)`;

const fold = `WITH old AS (
    SELECT folded_until AS since, date_trunc('minute', now()) - make_interval(mins => $1::int) AS until
    FROM tally_mark WHERE id = 1),
  added AS (
    INSERT INTO tally_total (tenant_id, connection_id, action, to_state, count)
    SELECT t.tenant_id, t.connection_id, t.action, t.to_state, sum(t.count)
    FROM tally_minute t, old WHERE t.minute >= old.since AND t.minute < old.until GROUP BY 1, 2, 3, 4
    ON CONFLICT (tenant_id, connection_id, action, to_state) DO UPDATE SET count = tally_total.count + excluded.count)
  UPDATE tally_mark SET folded_until = old.until FROM old WHERE id = 1 AND old.until > old.since`;

/** Moves since the beginning: totals up to the mark, minutes from it on. Nothing where nobody keeps the tallies. */
export const talliedMoves = `SELECT tenant_id, connection_id, action, to_state, count FROM tally_total
  UNION ALL
  SELECT tenant_id, connection_id, action, to_state, count FROM tally_minute
  WHERE minute >= (SELECT folded_until FROM tally_mark WHERE id = 1)`;

/**
 * Counts the moves of the last minutes anew from the history, and adds minutes that can't change any more to the totals,
 * once. Reads only the history since the last fold, through a range of pages. Safe at any time and by several at once:
 * one works, the others answer false. The first call begins with the oldest line, so that it may take a while.
 */
export async function tally(ledger: Ledger): Promise<boolean> {
  await ledger.sql`
    INSERT INTO tally_mark (id, folded_until)
    SELECT 1, date_trunc('minute', COALESCE((SELECT min(created_at) FROM signing_operation), now()))
    WHERE NOT EXISTS (SELECT 1 FROM tally_mark) ON CONFLICT DO NOTHING`;
  return await ledger.sql.begin(async (sql) => {
    const mine = await sql`SELECT 1 FROM tally_mark WHERE id = 1 FOR UPDATE SKIP LOCKED`;
    if (mine.length === 0) return false;
    await run(sql, recount, []);
    await run(sql, fold, [youngMinutes]);
    await sql`
      DELETE FROM tally_minute WHERE minute < now() - make_interval(days => ${keptDays})
        AND minute < (SELECT folded_until FROM tally_mark WHERE id = 1)`;
    return true;
  });
}
