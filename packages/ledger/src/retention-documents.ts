import { type AnySql, type Ledger, run } from "./database.js";
import { sqlState } from "./errors.js";
import { underLegalHold } from "./retention-payloads.js";
import { finalStates } from "./state.js";
import { documentToken } from "./subjects.js";

const finals = finalStates.map((state) => `'${state}'`).join(", ");

/** Why a document stays; `busy`: plans were being written without a pause, the next run tries again. */
export type DocumentStays = "legal-hold" | "still-needed" | "not-indexed" | "archived" | "busy";

/**
 * SQL: why document `x` stays, null where it may go. A SEND without tokens of its own (planned by a release that wrote
 * none) may need any document, so while one is open or held no document goes. What a FINALIZE archived is the record itself.
 */
const reason = `CASE
    WHEN ${underLegalHold("$1", "NULL")} OR EXISTS (
      SELECT 1 FROM operation_subject s WHERE s.tenant_id = $1 AND s.kind = 'document' AND s.token = x.token
        AND ${underLegalHold("$1", "s.operation_id")}) THEN 'legal-hold'
    WHEN EXISTS (
      SELECT 1 FROM operation_subject s JOIN signing_operation o ON o.tenant_id = s.tenant_id AND o.operation_id = s.operation_id
      WHERE s.tenant_id = $1 AND s.kind = 'document' AND s.token = x.token AND o.state NOT IN (${finals})) THEN 'still-needed'
    WHEN EXISTS (
      SELECT 1 FROM signing_operation o JOIN approved_payload p ON p.tenant_id = o.tenant_id AND p.operation_id = o.operation_id
      WHERE o.tenant_id = $1 AND o.action = 'SEND' AND p.payload IS NOT NULL
        AND (o.state NOT IN (${finals}) OR o.operation_id IN (
          SELECT h.operation_id FROM legal_hold h WHERE h.tenant_id = $1 AND h.released_at IS NULL))
        AND NOT EXISTS (SELECT 1 FROM operation_subject s WHERE s.tenant_id = $1 AND s.operation_id = o.operation_id
          AND s.kind IN ('signer','document'))) THEN 'not-indexed'
    WHEN EXISTS (
      SELECT 1 FROM signing_operation o WHERE o.tenant_id = $1 AND o.action = 'FINALIZE' AND o.archived_sha256 = x.sha256) THEN 'archived'
  END`;

const wanted = `(SELECT decode(w.sha256, 'hex') AS sha256, decode(w.token, 'hex') AS token
  FROM jsonb_to_recordset($2::text::jsonb) AS w(sha256 text, token text))`;

const judgeStatement = `SELECT encode(x.sha256, 'hex') AS sha256, ${reason} AS reason FROM ${wanted} x`;

const eraseStatement = `UPDATE document d SET bytes = NULL, erased_at = now() FROM ${wanted} x
  WHERE d.tenant_id = $1 AND d.sha256 = x.sha256 AND d.bytes IS NOT NULL
    AND d.created_at < now() - make_interval(days => $3::int) AND ${reason} IS NULL`;

const pageStatement = `SELECT encode(d.sha256, 'hex') AS sha256, d.created_at AS "createdAt" FROM document d
  WHERE d.tenant_id = $1 AND d.bytes IS NOT NULL AND d.created_at < now() - make_interval(days => $2::int)
    AND (d.created_at, d.sha256) > ($3::timestamptz, decode($4, 'hex'))
  ORDER BY d.created_at, d.sha256 LIMIT $5::int`;

export interface DocumentPlace {
  createdAt: string;
  sha256: string;
}

export const firstDocument: DocumentPlace = { createdAt: "-infinity", sha256: "" };

/** How long plans of all tenants may wait for an erasure that waits for one of them, ms. */
const lockWaitMs = 200;

/**
 * Erases those of the next `limit` documents, uploaded more than `days` days ago, that nobody needs any more; one commit.
 * `last` is where the next batch goes on; undefined when nothing is left. A dry run only judges.
 */
export async function eraseDocuments(
  ledger: Ledger,
  batch: { tenantId: string; days: number; limit: number; after: DocumentPlace; dryRun: boolean },
): Promise<{ erased: number; stayed: DocumentStays[]; last: DocumentPlace | undefined }> {
  const { tenantId, days, limit, after, dryRun } = batch;
  const page = await run<{ sha256: string; createdAt: string }>(ledger.sql, pageStatement, [
    ...[tenantId, days, after.createdAt, after.sha256, limit],
  ]);
  const last = page.at(-1);
  if (last === undefined) return { erased: 0, stayed: [], last: undefined };
  const key = await ledger.tenantKey(tenantId);
  const tokenOf = new Map(page.map(({ sha256 }) => [sha256, documentToken(key, sha256).toString("hex")]));
  const asked = [...tokenOf].map(([sha256, token]) => ({ sha256, token }));
  const judged = await run<{ sha256: string; reason: DocumentStays | null }>(ledger.sql, judgeStatement, [
    tenantId,
    JSON.stringify(asked),
  ]);
  const stayed = judged.flatMap((row) => (row.reason === null ? [] : [row.reason]));
  const free = judged
    .filter((row) => row.reason === null)
    .map(({ sha256 }) => ({ sha256, token: tokenOf.get(sha256) }));
  if (free.length === 0 || dryRun) return { erased: free.length, stayed, last };
  const erased = await ledger.sql
    .begin(async (sql) => await eraseFree(sql, [tenantId, JSON.stringify(free), days]))
    .catch(ifBusy);
  if (erased === undefined) return { erased: 0, stayed: [...stayed, ...free.map(() => "busy" as const)], last };
  return { erased, stayed, last };
}

/**
 * No plan is under way while this looks and erases: a plan that has seen the bytes is either counted as needing them, or
 * comes after the commit and is refused (`documents-unknown`).
 */
async function eraseFree(sql: AnySql, parameters: [string, string, number]): Promise<number> {
  await sql`SELECT set_config('lock_timeout', ${String(lockWaitMs)}, true)`;
  await sql`LOCK TABLE operation_subject IN SHARE MODE`;
  return (await run(sql, eraseStatement, parameters)).count;
}

const lockNotAvailable = "55P03";

function ifBusy(error: unknown): undefined {
  if (sqlState(error) === lockNotAvailable) return undefined;
  throw error;
}
