import type { AnySql, Ledger } from "./database.js";
import type { PlannedOperation, VoidRequest } from "./plan.js";
import { isOver, knownReferences, planVoidsOf } from "./void-references.js";

/** The open duplicate ticket of an operation; undefined where there is none. */
export async function openDuplicateTicket(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
): Promise<string | undefined> {
  const [row] = await ledger.sql<{ ticket_id: string }[]>`
    SELECT ticket_id FROM ticket WHERE tenant_id = ${tenantId} AND kind = 'duplicate' AND subject_kind = 'operation'
      AND subject_id = ${operationId} AND resolved_at IS NULL`;
  return row?.ticket_id;
}

/**
 * Drafts that an ended SEND left behind: nobody was mailed for them, and nobody should be. Each gets a ledgered VOID (a
 * discard). Runs inside the audit's transaction.
 */
export async function orphanDrafts(
  ledger: Ledger,
  sql: AnySql,
  tenantId: string,
  operationId: string,
  voidRequest: VoidRequest,
): Promise<PlannedOperation[]> {
  const [row] = await sql<
    { connection_id: string; provider_ref: string | null; superseded_by: string | null; ended: boolean }[]
  >`
    SELECT connection_id, provider_ref, superseded_by, finished_at IS NOT NULL AS ended FROM signing_operation
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND action = 'SEND' FOR UPDATE`;
  if (row === undefined || !row.ended) return [];
  const drafts = (await knownReferences(sql, tenantId, operationId)).filter(
    (known) => known.role === "draft" && known.providerRef !== row.provider_ref && !isOver(known),
  );
  const decided = { tenantId, operationId, connectionId: row.connection_id, supersededBy: null };
  return await planVoidsOf(ledger, sql, decided, drafts, { voidRequest, waitForSuccessor: false });
}

/** An ended operation as an audit needs it. */
export interface Audited {
  tenantId: string;
  operationId: string;
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  state: string;
  connectionId: string;
  targetRef: string | null;
  /** ms until the window after its last attempt is over. */
  waitMs: number;
}

/** The operation that an audit is about; undefined where it is unknown or not final. */
export async function readForAudit(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
  quiescenceMs: number,
): Promise<Audited | undefined> {
  const [row] = await ledger.sql<Audited[]>`
    SELECT tenant_id AS "tenantId", operation_id AS "operationId", action, state, connection_id AS "connectionId", target_ref AS "targetRef",
      GREATEST(0, EXTRACT(EPOCH FROM (quiet_from + make_interval(secs => ${quiescenceMs}::float8 / 1000) - now())) * 1000)::float8 AS "waitMs"
    FROM signing_operation WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND finished_at IS NOT NULL`;
  return row;
}

/** One line in the history of an ended operation: when it was looked at again, and what that showed. */
export async function recordAudit(
  sql: AnySql,
  tenantId: string,
  operationId: string,
  line: { reason: string; evidence: object },
): Promise<void> {
  await sql`
    WITH u AS (
      UPDATE signing_operation SET event_no = event_no + 1 WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}
      RETURNING tenant_id, operation_id, event_no, state, attempt_no)
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'audit', state, state, ${line.reason}, 'audit', attempt_no,
      ${JSON.stringify(line.evidence)}::text::jsonb FROM u`;
}
