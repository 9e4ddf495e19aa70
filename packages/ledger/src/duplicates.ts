import type { AnySql, Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import type { PlannedOperation, VoidRequest } from "./plan.js";
import { checkReason } from "./reason.js";
import {
  type Decided,
  isBeingVoided,
  isOver,
  isUnsent,
  type KnownReference,
  knownReferences,
  planVoidsOf,
} from "./void-references.js";

/** A decision on a duplicate ticket: the operation's row keeps its truth, its references are told apart. */
export interface DuplicateDecision {
  tenantId: string;
  ticketId: string;
  /** The operation's evidence that the decision was made on. */
  evidenceNo: number;
  /** The reference that stays alive; undefined: none (the operation had failed, yet a request exists). */
  keep?: string;
  who: string;
  why: string;
  basis: "person" | "policy";
  voidRequest: VoidRequest;
}

export interface DuplicateDecided {
  operationId: string;
  planned: PlannedOperation[];
  /** Others that are over already: completed ones are never voided. */
  leftAlone: number;
}

/**
 * Keeps one reference of an operation that has several and plans a ledgered VOID for each other one that is not over.
 * Throws not-found, `ticket-closed`, `ticket-unsuitable`, `evidence-moved`, `reference-unknown`,
 * `reference-is-a-draft`, `reference-being-voided`, `reason-missing`.
 */
export async function decideDuplicate(ledger: Ledger, decision: DuplicateDecision): Promise<DuplicateDecided> {
  checkReason(decision.who, decision.why);
  const { tenantId, ticketId, keep } = decision;
  await ledger.tenantKey(tenantId);
  return await ledger.sql.begin(async (sql) => {
    const [ticket] = await sql<{ kind: string; subject_id: string; closed: boolean }[]>`
      SELECT kind, subject_id, resolved_at IS NOT NULL AS closed FROM ticket
      WHERE tenant_id = ${tenantId} AND ticket_id = ${ticketId} FOR UPDATE`;
    if (ticket === undefined) throw new NotFoundError("ticket");
    if (ticket.kind !== "duplicate")
      throw new PlanRefusedError("ticket-unsuitable", `a ${ticket.kind} ticket is not decided this way`);
    if (ticket.closed) throw new PlanRefusedError("ticket-closed", "this ticket has been decided already");
    const operationId = ticket.subject_id;
    const [row] = await sql<{ connection_id: string; superseded_by: string | null; evidence_no: number }[]>`
      SELECT connection_id, superseded_by, evidence_no FROM signing_operation
      WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} FOR UPDATE`;
    if (row === undefined) throw new NotFoundError("operation");
    const references = await knownReferences(sql, tenantId, operationId);
    if (row.evidence_no !== decision.evidenceNo) {
      throw new PlanRefusedError("evidence-moved", "newer evidence has arrived: look again before deciding", {
        evidenceNo: row.evidence_no,
      });
    }
    const others = references.filter((known) => known.providerRef !== keep);
    const decided = { tenantId, operationId, connectionId: row.connection_id, supersededBy: row.superseded_by };
    if (keep !== undefined) await checkKept(sql, decided, references, keep);
    const planned = await planVoidsOf(ledger, sql, decided, others, {
      voidRequest: decision.voidRequest,
      waitForSuccessor: false,
    });
    if (keep !== undefined) {
      await sql`
        UPDATE operation_reference SET role = CASE WHEN provider_ref = ${keep} THEN 'kept' ELSE 'extra' END
        WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}`;
    }
    await sql`
      WITH u AS (
        UPDATE signing_operation SET event_no = event_no + 1 WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}
        RETURNING tenant_id, operation_id, event_no, state, attempt_no)
      INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
      SELECT tenant_id, operation_id, event_no, now(), 'duplicate-decided', state, state, ${keep === undefined ? "kept-none" : "kept-one"},
        ${`${decision.basis}:${decision.who}`}, attempt_no,
        ${JSON.stringify({ who: decision.who, why: decision.why, basis: decision.basis, voidsPlanned: planned.length })}::text::jsonb FROM u`;
    await sql`
      UPDATE ticket SET resolved_at = now(), resolved_by = ${`${decision.basis}:${decision.who}`}, resolution = ${`decided: ${decision.why}`}
      WHERE tenant_id = ${tenantId} AND ticket_id = ${ticketId}`;
    return { operationId, planned, leftAlone: others.filter(isOver).length };
  });
}

/** What stays has to be a request of this operation that was sent and that no VOID is on its way to. */
async function checkKept(
  sql: AnySql,
  decided: Decided,
  references: readonly KnownReference[],
  keep: string,
): Promise<void> {
  const kept = references.find((known) => known.providerRef === keep);
  if (kept === undefined) throw new PlanRefusedError("reference-unknown", "this operation has no such reference");
  if (isUnsent(kept)) {
    throw new PlanRefusedError("reference-is-a-draft", "nobody has been mailed for this reference: it can't be kept");
  }
  if (await isBeingVoided(sql, decided, keep)) {
    throw new PlanRefusedError("reference-being-voided", "a VOID of this reference is on its way or done");
  }
}
