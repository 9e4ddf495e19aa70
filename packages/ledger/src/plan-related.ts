import { newId } from "@countersign/runtime";
import type { AnySql, Ledger, TransactionSql } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { type PayloadHash, payloadHash } from "./hash.js";
import { insertPlanned, type Plan, type PlannedOperation, type PlanOutcome } from "./plan.js";
import type { Relation } from "./relations.js";
import { isFinal, type State } from "./state.js";
import { transitionInside } from "./transitions.js";

/** Thrown inside the transaction to undo it where the intent turns out to exist already. */
export class IntentExists extends Error {}

/**
 * Plans an operation that has to do with another one (DESIGN §3 "Relations"), in one transaction: the row, what it waits
 * for, the supersession and the VOID that follows from it. undefined where the intent (or a document) stands in the way.
 */
export async function planRelated(ledger: Ledger, plan: Plan, hash: PayloadHash): Promise<PlanOutcome | undefined> {
  // Keys are read outside the transaction: nothing foreign is awaited while it is open.
  await ledger.tenantKey(plan.tenantId);
  return await undefinedIfIntentExists(ledger.sql.begin((sql) => planByAction(ledger, sql, plan, hash)));
}

/** The same inside the caller's transaction, under a savepoint of its own. */
export async function planRelatedInside(
  ledger: Ledger,
  sql: TransactionSql,
  plan: Plan,
  hash: PayloadHash,
): Promise<PlanOutcome | undefined> {
  return await undefinedIfIntentExists(sql.savepoint((inner) => planByAction(ledger, inner, plan, hash)));
}

export const planByAction = (ledger: Ledger, sql: AnySql, plan: Plan, hash: PayloadHash): Promise<PlanOutcome> =>
  plan.approved.action === "SEND" ? planAmendment(ledger, sql, plan, hash) : planOnTarget(ledger, sql, plan, hash);

async function undefinedIfIntentExists<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof IntentExists) return undefined;
    throw error;
  }
}

interface TargetRow {
  state: State;
  action: string;
  connection_id: string;
  provider_ref: string | null;
  superseded_by: string | null;
}

/** One operation waits for another: the row, and the counter on the one that is waited for. */
export async function addDependency(
  sql: AnySql,
  tenantId: string,
  waiter: string,
  waitsFor: string,
  relation: Relation,
): Promise<void> {
  await sql`
    INSERT INTO operation_dependency (tenant_id, operation_id, depends_on_operation_id, relation)
    VALUES (${tenantId}, ${waiter}, ${waitsFor}, ${relation})`;
  await sql`
    UPDATE signing_operation SET dependants = dependants + 1
    WHERE tenant_id = ${tenantId} AND operation_id = ${waitsFor}`;
}

/** Applies the line of the relations table at once where what is waited for has already ended. */
async function releaseIfEnded(sql: AnySql, tenantId: string, waitsFor: string): Promise<void> {
  await sql`SELECT cs_release(${tenantId}, ${waitsFor}::uuid)`;
}

export async function current(sql: AnySql, tenantId: string, operationId: string): Promise<PlannedOperation> {
  const [row] = await sql<{ state: State; event_no: number; open_dependencies: number }[]>`
    SELECT state, event_no, open_dependencies FROM signing_operation
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}`;
  if (row === undefined) throw new NotFoundError("operation");
  return { operationId, state: row.state, eventNo: row.event_no, waiting: row.open_dependencies > 0 };
}

/** VOID, RESEND, FINALIZE: wait for an unresolved target, bind its reference when it is released. */
async function planOnTarget(ledger: Ledger, sql: AnySql, plan: Plan, hash: PayloadHash): Promise<PlanOutcome> {
  const { approved, tenantId, operationId } = plan;
  if (approved.action === "SEND") throw new PlanRefusedError("target-unsuitable", "a SEND has no target");
  if ("providerRef" in approved.target) return planOnReference(ledger, sql, plan, hash, approved.target.providerRef);
  const targetId = approved.target.operationId;
  if (targetId === operationId) throw new PlanRefusedError("target-self", "an operation cannot act on itself");
  // The lock is the target's own row; ends take it first and their waiters after, so both go the same way.
  const [target] = await sql<TargetRow[]>`
    SELECT state, action, connection_id, provider_ref, superseded_by FROM signing_operation
    WHERE tenant_id = ${tenantId} AND operation_id = ${targetId} FOR UPDATE`;
  if (target === undefined) throw new NotFoundError("target operation");
  if (target.action !== "SEND") {
    throw new PlanRefusedError("target-unsuitable", `a ${approved.action} acts on a SEND, not on a ${target.action}`);
  }
  if (target.connection_id !== approved.connectionId) {
    throw new PlanRefusedError("target-connection", "the target belongs to another connection");
  }
  const inserted = await insertPlanned(ledger, sql, {
    plan,
    hash,
    openDependencies: 1,
    targetOperationId: targetId,
    actor: "producer",
  });
  if (inserted === undefined) throw new IntentExists();
  await addDependency(sql, tenantId, operationId, targetId, "target");
  if (target.superseded_by !== null) await markTargetSuperseded(sql, tenantId, targetId);
  if (target.state === "PLANNED" && approved.action === "VOID") {
    await supersede(sql, tenantId, targetId, "voided-before-sent", null);
  } else if (isFinal(target.state)) {
    await releaseIfEnded(sql, tenantId, targetId);
  }
  return { kind: "created", operation: await current(sql, tenantId, operationId), alsoPlanned: [] };
}

/** A bare reference: of a request that this ledger did not make, or no longer knows by operation. */
async function planOnReference(
  ledger: Ledger,
  sql: AnySql,
  plan: Plan,
  hash: PayloadHash,
  providerRef: string,
): Promise<PlanOutcome> {
  const inserted = await insertPlanned(ledger, sql, {
    plan,
    hash,
    openDependencies: 0,
    targetRef: providerRef,
    actor: "producer",
  });
  if (inserted === undefined) throw new IntentExists();
  return { kind: "created", operation: inserted, alsoPlanned: [] };
}

/** PLANNED → SUPERSEDED inside a planning transaction; its own waiters are released by the database. */
async function supersede(
  sql: AnySql,
  tenantId: string,
  operationId: string,
  reason: string,
  successor: string | null,
): Promise<void> {
  await transitionInside(sql, "supersedePlanned", {
    tenantId,
    operationId,
    actor: "ledger",
    reason,
    ...(successor === null ? {} : { successor, evidence: { successor } }),
  });
}

async function markTargetSuperseded(sql: AnySql, tenantId: string, targetId: string): Promise<void> {
  await sql`
    UPDATE signing_operation SET target_superseded = true
    WHERE tenant_id = ${tenantId} AND target_operation_id = ${targetId} AND action = 'VOID' AND finished_at IS NULL`;
}

/** An amendment acts on the earlier operation in the transaction that plans it. */
async function planAmendment(ledger: Ledger, sql: AnySql, plan: Plan, hash: PayloadHash): Promise<PlanOutcome> {
  const { tenantId, operationId, supersedes } = plan;
  if (supersedes === undefined) throw new PlanRefusedError("supersedes-missing", "an amendment names what it replaces");
  if (supersedes.operationId === operationId) {
    throw new PlanRefusedError("target-self", "an operation cannot replace itself");
  }
  const earlier = await lockEarlier(sql, tenantId, supersedes.operationId);
  const inserted = await insertPlanned(ledger, sql, { plan, hash, openDependencies: 0, actor: "producer" });
  if (inserted === undefined) throw new IntentExists();
  if (earlier.superseded_by !== null) {
    throw new PlanRefusedError("already-superseded", "the operation has been replaced already: replace its successor", {
      successor: earlier.superseded_by,
    });
  }
  await followLastSuccessor(sql, plan);
  const alsoPlanned: PlannedOperation[] = [];
  if (earlier.state === "PLANNED") {
    await supersede(sql, tenantId, supersedes.operationId, "amended", operationId);
  } else {
    await linkSuccessor(sql, tenantId, supersedes.operationId, operationId);
    await markTargetSuperseded(sql, tenantId, supersedes.operationId);
    const nothingExists = earlier.state === "TERMINAL_FAILED" || earlier.state === "SUPERSEDED";
    if (!nothingExists) alsoPlanned.push(await planVoidOf(ledger, sql, plan, earlier));
  }
  if (supersedes.mode === "void-first") await waitForVoids(sql, tenantId, operationId);
  return {
    kind: "created",
    operation: await current(sql, tenantId, operationId),
    alsoPlanned: await Promise.all(alsoPlanned.map((planned) => current(sql, tenantId, planned.operationId))),
  };
}

async function lockEarlier(sql: AnySql, tenantId: string, operationId: string): Promise<TargetRow> {
  const [earlier] = await sql<TargetRow[]>`
    SELECT state, action, connection_id, provider_ref, superseded_by FROM signing_operation
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} FOR UPDATE`;
  if (earlier === undefined) throw new NotFoundError("superseded operation");
  if (earlier.action !== "SEND") {
    throw new PlanRefusedError("target-unsuitable", `a SEND replaces a SEND, not a ${earlier.action}`);
  }
  return earlier;
}

/** The earlier one keeps its truth and gets its successor; a line in its history says so. */
async function linkSuccessor(sql: AnySql, tenantId: string, earlier: string, successor: string): Promise<void> {
  await sql`
    WITH u AS (
      UPDATE signing_operation SET superseded_by = ${successor}::uuid, event_no = event_no + 1, updated_at = now()
      WHERE tenant_id = ${tenantId} AND operation_id = ${earlier} AND superseded_by IS NULL
      RETURNING tenant_id, operation_id, event_no, state, attempt_no)
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'amended', state, state, 'amended', 'ledger', attempt_no,
      ${sql.json({ successor })}::jsonb FROM u`;
}

/** The ledgered VOID of what an amendment replaces. In send-first it also waits until the new SEND is CONFIRMED. */
async function planVoidOf(ledger: Ledger, sql: AnySql, plan: Plan, earlier: TargetRow): Promise<PlannedOperation> {
  const { tenantId, supersedes } = plan;
  if (supersedes === undefined) throw new PlanRefusedError("supersedes-missing", "an amendment names what it replaces");
  const voidId = newId();
  const { request, bodyDigest } = supersedes.voidRequest({ tenantId, operationId: voidId });
  const approved = {
    action: "VOID",
    connectionId: earlier.connection_id,
    payload: { schemaVersion: 1 },
    target: { operationId: supersedes.operationId },
  } as const;
  const sendFirst = supersedes.mode === "send-first";
  const voidPlan: Plan = {
    tenantId,
    operationId: voidId,
    intentKey: `cs:void:${supersedes.operationId}:1`,
    approved,
    request,
    bodyDigest,
  };
  const inserted = await insertPlanned(ledger, sql, {
    plan: voidPlan,
    hash: payloadHash(approved),
    openDependencies: sendFirst ? 2 : 1,
    targetOperationId: supersedes.operationId,
    actor: "ledger",
  });
  if (inserted === undefined) throw new PlanRefusedError("void-exists", "the replaced operation already has its VOID");
  await addDependency(sql, tenantId, voidId, supersedes.operationId, "target");
  if (sendFirst) await addDependency(sql, tenantId, voidId, plan.operationId, "send-first");
  await markTargetSuperseded(sql, tenantId, supersedes.operationId);
  if (isFinal(earlier.state)) await releaseIfEnded(sql, tenantId, supersedes.operationId);
  return inserted;
}

/**
 * VOIDs that waited for the replaced SEND (send-first) follow its successor: they wait for that one where it is
 * send-first too, and no longer wait where it is void-first (DESIGN §3).
 */
async function followLastSuccessor(sql: AnySql, plan: Plan): Promise<void> {
  const { tenantId, operationId, supersedes } = plan;
  if (supersedes === undefined) return;
  const waiting = await sql<{ operation_id: string }[]>`
    UPDATE operation_dependency SET resolved_at = now()
    WHERE tenant_id = ${tenantId} AND depends_on_operation_id = ${supersedes.operationId} AND relation = 'send-first' AND resolved_at IS NULL
    RETURNING operation_id`;
  for (const { operation_id: waiter } of waiting) {
    if (supersedes.mode === "send-first") {
      await addDependency(sql, tenantId, waiter, operationId, "send-first");
    } else {
      await sql`
        UPDATE signing_operation SET open_dependencies = open_dependencies - 1,
          due_at = CASE WHEN state <> 'PLANNED' THEN due_at WHEN open_dependencies = 1 THEN now() END
        WHERE tenant_id = ${tenantId} AND operation_id = ${waiter}`;
    }
  }
}

/** void-first: the new SEND waits for every unfinished VOID of the whole chain that it replaces. */
async function waitForVoids(sql: AnySql, tenantId: string, operationId: string): Promise<void> {
  const voids = await sql<{ operation_id: string }[]>`
    WITH RECURSIVE chain AS (
      SELECT supersedes AS operation_id FROM signing_operation
      WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} AND supersedes IS NOT NULL
      UNION
      SELECT o.supersedes FROM signing_operation o JOIN chain c ON o.operation_id = c.operation_id
      WHERE o.tenant_id = ${tenantId} AND o.supersedes IS NOT NULL)
    SELECT v.operation_id FROM signing_operation v JOIN chain c ON v.target_operation_id = c.operation_id
    WHERE v.tenant_id = ${tenantId} AND v.action = 'VOID' AND v.finished_at IS NULL
    ORDER BY v.operation_id
    FOR UPDATE OF v`;
  for (const { operation_id: voidId } of voids) await addDependency(sql, tenantId, operationId, voidId, "void-first");
  if (voids.length > 0) {
    await sql`
      UPDATE signing_operation SET open_dependencies = open_dependencies + ${voids.length}, due_at = NULL
      WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}`;
  }
}
