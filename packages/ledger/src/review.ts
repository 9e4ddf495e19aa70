import type { AnySql, Ledger } from "./database.js";
import { guardStates, NotFoundError, PlanRefusedError, sqlState } from "./errors.js";
import { payloadHash } from "./hash.js";
import type { Plan, PlannedOperation, VoidRequest } from "./plan.js";
import { IntentExists, planByAction } from "./plan-related.js";
import { checkReason } from "./reason.js";
import { type DependantsDecision, decideOnDependants } from "./review-dependants.js";
import { releaseWaitingVoids } from "./review-waiting-voids.js";
import type { State } from "./state.js";
import { transitionInside } from "./transitions.js";
import {
  type Decided,
  isOver,
  isUnsent,
  type KnownReference,
  knownReferences,
  planVoidsOf,
} from "./void-references.js";

/** A named person's or policy's decision on an operation in NEEDS_REVIEW (DESIGN §3 "Review"). */
export interface Review {
  tenantId: string;
  operationId: string;
  /** The evidence that the decision was made on. */
  evidenceNo: number;
  /** Opaque id of the person or policy. */
  who: string;
  why: string;
  basis: "person" | "policy";
  decision:
    | {
        kind: "keep";
        /** The reference to keep; for VOID, RESEND and FINALIZE it may be left out: their target's. */
        providerRef?: string;
        /** Found by hand and read at the provider by the caller: of this connection. */
        foundByHand?: { signingStatus: string };
      }
    | {
        kind: "abandon";
        /** What becomes of what waits for a VOID that is given up; needed where something does. */
        dependants?: DependantsDecision;
        /** Planned in the same transaction; names this operation in `supersedes`. */
        replacement?: Plan;
      };
  /** Not decided before `quiet_from` plus this, ms: an attempt may still become visible. */
  quiescenceMs: number;
  voidRequest: VoidRequest;
}

export interface Reviewed {
  state: State;
  /** VOIDs that the decision planned or released. */
  planned: PlannedOperation[];
  replacement?: PlannedOperation;
}

interface ReviewedRow {
  state: State;
  reason: string;
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  connection_id: string;
  evidence_no: number;
  superseded_by: string | null;
  target_ref: string | null;
  target_operation_id: string | null;
  wait_ms: number;
}

/**
 * Decides: keeps one reference (a VOID is planned for every other) or abandons the operation (keeps none). One
 * transaction; two at once: one wins, the other is told. Throws {@link NotFoundError} and {@link PlanRefusedError}:
 * `not-in-review`, `evidence-moved`, `too-early`, `reference-unknown`, `reference-is-a-draft`, `dependants-undecided`,
 * `reason-missing`, and whatever planning the replacement refuses. A refusal changes nothing.
 */
export async function review(ledger: Ledger, decision: Review): Promise<Reviewed> {
  checkReason(decision.who, decision.why);
  await ledger.tenantKey(decision.tenantId);
  try {
    return await ledger.sql.begin((sql) => decideInside(ledger, sql, decision));
  } catch (error) {
    if (error instanceof IntentExists) throw await whyNotReplaced(ledger, decision);
    if (sqlState(error) === guardStates.referenceOfAnotherOperation) {
      throw new PlanRefusedError("reference-of-another-operation", "this reference belongs to another operation");
    }
    throw error;
  }
}

/** The replacement's row could not be made: its intent stands there already, or a document of it is missing. */
async function whyNotReplaced(ledger: Ledger, { tenantId, decision }: Review): Promise<PlanRefusedError> {
  const intentKey = decision.kind === "abandon" ? (decision.replacement?.intentKey ?? "") : "";
  const rows = await ledger.sql`
    SELECT 1 FROM signing_operation WHERE tenant_id = ${tenantId} AND intent_key = ${intentKey}`;
  return rows.length > 0
    ? new PlanRefusedError("intent-exists", "the replacement's intent exists already: give it a new one")
    : new PlanRefusedError("documents-unknown", "a document of the replacement has not been uploaded for this tenant");
}

async function decideInside(ledger: Ledger, sql: AnySql, request: Review): Promise<Reviewed> {
  const row = await lockForReview(sql, request);
  const { decision } = request;
  const replacement =
    decision.kind === "abandon" && decision.replacement !== undefined
      ? await planReplacement(ledger, sql, request, decision.replacement)
      : undefined;
  const decided: Decided = {
    tenantId: request.tenantId,
    operationId: request.operationId,
    connectionId: row.connection_id,
    supersededBy: replacement?.operationId ?? row.superseded_by,
  };
  const planned =
    decision.kind === "keep"
      ? await keep(ledger, sql, request, row, decided, decision)
      : await abandon(ledger, sql, request, row, decided, decision);
  await closeTicket(sql, request);
  return {
    state: decision.kind === "keep" ? "CONFIRMED" : "SUPERSEDED",
    planned,
    ...(replacement === undefined ? {} : { replacement }),
  };
}

async function lockForReview(sql: AnySql, request: Review): Promise<ReviewedRow> {
  const { tenantId, operationId, quiescenceMs } = request;
  const [row] = await sql<ReviewedRow[]>`
    SELECT state, reason, action, connection_id, evidence_no, superseded_by, target_ref, target_operation_id,
      GREATEST(0, EXTRACT(EPOCH FROM (quiet_from + make_interval(secs => ${quiescenceMs}::float8 / 1000) - now())) * 1000)::float8 AS wait_ms
    FROM signing_operation o WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} FOR UPDATE OF o`;
  if (row === undefined) throw new NotFoundError("operation");
  if (row.state !== "NEEDS_REVIEW") {
    const decidedBy = await whoDecided(sql, tenantId, operationId);
    throw new PlanRefusedError("not-in-review", `the operation is ${row.state}: there is nothing to decide`, {
      state: row.state,
      ...(decidedBy === undefined ? {} : { decidedBy }),
    });
  }
  if (row.evidence_no !== request.evidenceNo) {
    throw new PlanRefusedError("evidence-moved", "newer evidence has arrived: look again before deciding", {
      evidenceNo: row.evidence_no,
    });
  }
  if ((row.wait_ms ?? 0) > 0) {
    throw new PlanRefusedError("too-early", "an attempt may still become visible: decide after the quiescence window", {
      retryAfterMs: Math.ceil(row.wait_ms),
    });
  }
  return row;
}

/** A statement of its own: whoever won has committed while this one waited for the row. */
async function whoDecided(sql: AnySql, tenantId: string, operationId: string): Promise<string | undefined> {
  const [line] = await sql<{ actor: string }[]>`
    SELECT actor FROM operation_event
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND from_state = 'NEEDS_REVIEW' AND to_state <> 'NEEDS_REVIEW'
    ORDER BY seq DESC LIMIT 1`;
  return line?.actor;
}

async function planReplacement(ledger: Ledger, sql: AnySql, request: Review, plan: Plan): Promise<PlannedOperation> {
  if (plan.supersedes?.operationId !== request.operationId) {
    throw new PlanRefusedError("replacement-unrelated", "a replacement supersedes the operation that is decided on");
  }
  const outcome = await planByAction(ledger, sql, plan, payloadHash(plan.approved));
  if (outcome.kind !== "created")
    throw new PlanRefusedError("intent-exists", "the replacement's intent exists already");
  return outcome.operation;
}

const history = (request: Review, planned: readonly PlannedOperation[], more: object = {}): object => ({
  decision: request.decision.kind,
  who: request.who,
  why: request.why,
  basis: request.basis,
  sawEvidence: request.evidenceNo,
  voidsPlanned: planned.length,
  ...more,
});

const actorOf = (request: Review): string => `${request.basis}:${request.who}`;

async function keep(
  ledger: Ledger,
  sql: AnySql,
  request: Review,
  row: ReviewedRow,
  decided: Decided,
  decision: Extract<Review["decision"], { kind: "keep" }>,
): Promise<PlannedOperation[]> {
  const { tenantId, operationId } = request;
  const kept = await keptReference(sql, request, row, decision);
  const others =
    row.action === "SEND"
      ? (await knownReferences(sql, tenantId, operationId)).filter((known) => known.providerRef !== kept.providerRef)
      : [];
  const options = { voidRequest: request.voidRequest, waitForSuccessor: false };
  const planned = await planVoidsOf(ledger, sql, decided, others, options);
  await sql`
    UPDATE operation_reference SET role = 'extra'
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND provider_ref <> ${kept.providerRef} AND role <> 'extra'`;
  const status = decision.foundByHand?.signingStatus ?? kept.status;
  await apply(sql, "decideConfirmed", request, {
    providerRef: kept.providerRef,
    referenceSource: decision.foundByHand === undefined ? "review" : "found-by-hand",
    // What the provider has said of it; where it has said nothing, nobody says it for it.
    ...(row.action === "SEND" ? { shows: true } : {}),
    ...(row.action === "SEND" && status !== null ? { signingStatus: status } : {}),
    reason: "kept-by-review",
    evidence: history(request, planned, { foundByHand: decision.foundByHand !== undefined }),
  });
  return planned;
}

/** The provider's own record says that the target is over another way: nobody can decide that it is void. */
const contradictsVoid = new Set(["target-completed", "target-declined"]);

async function keptReference(
  sql: AnySql,
  request: Review,
  row: ReviewedRow,
  decision: Extract<Review["decision"], { kind: "keep" }>,
): Promise<KnownReference> {
  const { tenantId, operationId } = request;
  if (row.action !== "SEND") {
    if (row.action === "VOID" && contradictsVoid.has(row.reason)) {
      throw new PlanRefusedError(
        "target-contradicts",
        `the record says ${row.reason}: this VOID can't be taken as done; abandon it`,
      );
    }
    const providerRef = decision.providerRef ?? row.target_ref;
    if (providerRef === null || providerRef !== row.target_ref) {
      throw new PlanRefusedError("reference-unknown", `a ${row.action} keeps its target's reference, no other`);
    }
    return { providerRef, role: "kept", status: null };
  }
  if (decision.providerRef === undefined) throw new PlanRefusedError("reference-unknown", "name the reference to keep");
  const known = (await knownReferences(sql, tenantId, operationId)).find(
    (each) => each.providerRef === decision.providerRef,
  );
  if (known === undefined) {
    if (decision.foundByHand === undefined) {
      throw new PlanRefusedError("reference-unknown", "this operation has no such reference");
    }
    await refuseOfAnother(sql, tenantId, row.connection_id, operationId, decision.providerRef);
    return { providerRef: decision.providerRef, role: "evidence", status: decision.foundByHand.signingStatus };
  }
  if (isUnsent(known)) {
    throw new PlanRefusedError(
      "reference-is-a-draft",
      "nobody has been mailed for this reference: it can't be kept as sent",
    );
  }
  return known;
}

async function refuseOfAnother(
  sql: AnySql,
  tenantId: string,
  connectionId: string,
  operationId: string,
  providerRef: string,
): Promise<void> {
  const rows = await sql`
    SELECT 1 FROM operation_reference WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}
      AND provider_ref = ${providerRef} AND operation_id <> ${operationId}`;
  if (rows.length > 0) {
    throw new PlanRefusedError("reference-of-another-operation", "this reference belongs to another operation");
  }
}

async function abandon(
  ledger: Ledger,
  sql: AnySql,
  request: Review,
  row: ReviewedRow,
  decided: Decided,
  decision: Extract<Review["decision"], { kind: "abandon" }>,
): Promise<PlannedOperation[]> {
  const { tenantId, operationId } = request;
  if (row.action !== "SEND") {
    const { reason, planned } = await decideOnDependants(ledger, sql, {
      tenantId,
      operationId,
      action: row.action,
      connectionId: row.connection_id,
      targetOperationId: row.target_operation_id,
      targetRef: row.target_ref,
      ...(decision.dependants === undefined ? {} : { decision: decision.dependants }),
      voidRequest: request.voidRequest,
    });
    await apply(sql, "decideSuperseded", request, {
      reason,
      evidence: history(request, planned, { dependants: decision.dependants ?? "none" }),
    });
    return planned;
  }
  const references = (await knownReferences(sql, tenantId, operationId)).filter((known) => !isOver(known));
  const taken = await releaseWaitingVoids(sql, decided, references);
  const rest = references.filter((known) => !taken.refs.has(known.providerRef));
  const own = await planVoidsOf(ledger, sql, decided, rest, {
    voidRequest: request.voidRequest,
    waitForSuccessor: true,
  });
  await sql`
    UPDATE operation_reference SET role = 'extra' WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND role <> 'extra'`;
  const planned = [...taken.voids, ...own];
  await apply(sql, "decideSuperseded", request, { reason: "abandoned-by-review", evidence: history(request, planned) });
  return planned;
}

/** The write is conditional like every other: newer evidence, and nothing of this happened. */
async function apply(
  sql: AnySql,
  edge: "decideConfirmed" | "decideSuperseded",
  request: Review,
  more: {
    reason: string;
    evidence: object;
    providerRef?: string;
    referenceSource?: string;
    signingStatus?: string;
    shows?: boolean;
  },
): Promise<void> {
  const applied = await transitionInside(sql, edge, {
    tenantId: request.tenantId,
    operationId: request.operationId,
    evidenceNo: request.evidenceNo,
    basis: request.basis,
    actor: actorOf(request),
    ...more,
  });
  if (!applied) throw new PlanRefusedError("evidence-moved", "newer evidence has arrived: look again before deciding");
}

async function closeTicket(sql: AnySql, request: Review): Promise<void> {
  await sql`
    UPDATE ticket SET resolved_at = now(), resolved_by = ${actorOf(request)},
      resolution = ${request.decision.kind === "keep" ? `kept: ${request.why}` : `abandoned: ${request.why}`}
    WHERE tenant_id = ${request.tenantId} AND kind = 'needs-review' AND subject_kind = 'operation' AND subject_id = ${request.operationId}
      AND resolved_at IS NULL`;
}
