import { type Ledger, run } from "./database.js";
import { firstIdAt } from "./id-at.js";
import { finalStates } from "./state.js";

const finals = finalStates.map((state) => `'${state}'`).join(", ");

/** SQL: a legal hold of the tenant, or of this operation, is in force. Both are SQL of the outer statement. */
export const underLegalHold = (tenant: string, operation: string): string =>
  `EXISTS (SELECT 1 FROM legal_hold h WHERE h.tenant_id = ${tenant} AND h.released_at IS NULL
    AND (h.operation_id IS NULL OR h.operation_id = ${operation}))`;

// An operation that ended before a moment was planned before it: the index of kept payloads is read up to there only.
const oldEnough = `p.tenant_id = $1 AND p.payload IS NOT NULL
  AND p.operation_id < ${firstIdAt("(now() - make_interval(days => $2::int))")}`;
const over = `o.state IN (${finals}) AND o.finished_at < now() - make_interval(days => $2::int)`;
const from = `FROM approved_payload p JOIN signing_operation o ON o.tenant_id = p.tenant_id AND o.operation_id = p.operation_id`;
const held = underLegalHold("p.tenant_id", "p.operation_id");

const eraseStatement = `UPDATE approved_payload e SET payload = NULL, request = NULL, erased_at = now() FROM (
    SELECT p.tenant_id, p.operation_id ${from}
    WHERE ${oldEnough} AND ${over} AND NOT ${held} AND p.operation_id > $4::uuid
    ORDER BY p.operation_id LIMIT $3::int FOR UPDATE OF p SKIP LOCKED) old
  WHERE e.tenant_id = old.tenant_id AND e.operation_id = old.operation_id
  RETURNING e.operation_id AS "operationId"`;

const forgetStatement = `DELETE FROM operation_subject s USING jsonb_array_elements_text($2::text::jsonb) AS x(id)
  WHERE s.tenant_id = $1 AND s.kind = 'signer' AND s.operation_id = x.id::uuid`;

const countStatement = `SELECT count(*) FILTER (WHERE ${over} AND NOT ${held})::int AS erasable,
    count(*) FILTER (WHERE ${over} AND ${held})::int AS held,
    count(*) FILTER (WHERE o.state NOT IN (${finals}))::int AS "notFinal"
  ${from} WHERE ${oldEnough}`;

/** Old payloads: those that may go, and those that stay because of a legal hold or because their operation is not final. */
export async function countOldPayloads(
  ledger: Ledger,
  tenantId: string,
  days: number,
): Promise<{ erasable: number; held: number; notFinal: number }> {
  const [row] = await run<{ erasable: number; held: number; notFinal: number }>(ledger.sql, countStatement, [
    tenantId,
    days,
  ]);
  return row ?? { erasable: 0, held: 0, notFinal: 0 };
}

/** The first id there can be. */
export const beforeAll = "00000000-0000-0000-0000-000000000000";

/**
 * Erases payload and request of up to `limit` operations that ended more than `days` days ago, with the tokens by which
 * their signers are found: one commit. `last` is where the next batch goes on; undefined when nothing is left.
 */
export async function erasePayloads(
  ledger: Ledger,
  batch: { tenantId: string; days: number; limit: number; after: string },
): Promise<{ payloads: number; subjects: number; last: string | undefined }> {
  const { tenantId, days, limit, after } = batch;
  return await ledger.sql.begin(async (sql) => {
    const erased = await run<{ operationId: string }>(sql, eraseStatement, [tenantId, days, limit, after]);
    const ids = erased.map((row) => row.operationId).sort();
    if (ids.length === 0) return { payloads: 0, subjects: 0, last: undefined };
    const forgotten = await run(sql, forgetStatement, [tenantId, JSON.stringify(ids)]);
    return { payloads: ids.length, subjects: forgotten.count, last: ids.at(-1) };
  });
}
