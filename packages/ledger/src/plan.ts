import { randomUUID } from "node:crypto";
import { associatedWith } from "./approved.js";
import { type AnySql, type Ledger, run, type TransactionSql } from "./database.js";
import { certainlyRolledBack, PlanRefusedError, sqlState } from "./errors.js";
import { type Approved, differingParts, type PayloadHash, payloadHash } from "./hash.js";
import { planRelated, planRelatedInside } from "./plan-related.js";
import type { State } from "./state.js";
import { subjectTokens } from "./subjects.js";

/** What is recorded before the first byte goes anywhere (law 1). `payload` must be in normalised form. */
export interface Plan {
  tenantId: string;
  /** UUIDv7, chosen by the caller: the prepared request carries it. */
  operationId: string;
  intentKey: string;
  approved: Approved;
  /** The prepared request, as the adapter made it; stored encrypted, byte for byte what will be sent. */
  request: object;
  /** SHA-256 of the assembled body. */
  bodyDigest: Buffer;
  supersedes?: { operationId: string; mode: "void-first" | "send-first"; voidRequest: VoidRequest };
  /** Opaque ids of people or policies. */
  requestedBy?: string;
  approvedBy?: string;
}

/** Makes the request of a VOID that the system plans itself. Pure. */
export type VoidRequest = (ids: { tenantId: string; operationId: string }) => { request: object; bodyDigest: Buffer };

export interface PlannedOperation {
  operationId: string;
  state: State;
  eventNo: number;
  /** Waits for others: nothing to hand to a queue yet. */
  waiting: boolean;
}

export type PlanOutcome =
  | { kind: "created"; operation: PlannedOperation; alsoPlanned: PlannedOperation[] }
  /** Same intent, same hash: a true duplicate request. */
  | {
      kind: "existing";
      operation: PlannedOperation;
      firstRequestedBy: string | null;
      firstRequestedAt: string;
      /** Asked for by somebody else this time. */
      byAnother: boolean;
    }
  /** Same intent, another hash: refused, with the names of the parts that differ. */
  | { kind: "conflict"; operationId: string; differs: string[] };

const insertStatement = `WITH o AS (
    INSERT INTO signing_operation (tenant_id, operation_id, intent_key, action, connection_id, payload_hash, schema_version, hash_parts,
      provider_key, state, reason, due_at, open_dependencies, supersedes, supersede_mode, target_operation_id, target_ref,
      requested_by, approved_by)
    SELECT $1, $2::uuid, $3, $4, $5, $6::bytea, $7::int, $8::text::jsonb, $9::uuid, 'PLANNED', 'planned',
      CASE WHEN $10::int = 0 THEN now() END, $10::int, $11::uuid, $12, $13::uuid, $14, $15, $16
    FROM provider_connection c WHERE c.tenant_id = $1 AND c.connection_id = $5 AND NOT EXISTS (
      SELECT 1 FROM jsonb_array_elements_text($20::text::jsonb) AS wanted(digest)
      WHERE NOT EXISTS (SELECT 1 FROM document WHERE tenant_id = $1 AND sha256 = decode(wanted.digest, 'hex') AND bytes IS NOT NULL))
    ON CONFLICT (tenant_id, intent_key) DO NOTHING
    RETURNING tenant_id, operation_id, state, event_no),
  p AS (
    INSERT INTO approved_payload (tenant_id, operation_id, schema_version, payload, request, body_digest, key_id)
    SELECT tenant_id, operation_id, $7::int, $17::bytea, $18::bytea, $19::bytea, $21 FROM o),
  h AS (
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'planned', 'PLANNED', 'planned', $22, 0, NULL FROM o),
  s AS (
    INSERT INTO operation_subject (tenant_id, kind, token, operation_id)
    SELECT o.tenant_id, x.kind, decode(x.token, 'hex'), o.operation_id
    FROM o CROSS JOIN jsonb_to_recordset($23::text::jsonb) AS x(kind text, token text))
  SELECT operation_id, state, event_no FROM o`;

export interface PlanRow {
  plan: Plan;
  hash: PayloadHash;
  openDependencies: number;
  targetOperationId?: string;
  targetRef?: string;
  actor: string;
}

/** Inserts operation, payload and history in one statement; undefined where intent or documents stand in the way. */
export async function insertPlanned(
  ledger: Ledger,
  sql: AnySql,
  { plan, hash, openDependencies, targetOperationId, targetRef, actor }: PlanRow,
): Promise<PlannedOperation | undefined> {
  const key = await ledger.tenantKey(plan.tenantId);
  const seal = (value: object, what: "payload" | "request"): Buffer =>
    key.seal(Buffer.from(JSON.stringify(value)), associatedWith(plan.tenantId, plan.operationId, what));
  const { approved } = plan;
  const digests = approved.action === "SEND" ? approved.payload.documents.map((document) => document.sha256) : [];
  const [row] = await run<{ operation_id: string; state: State; event_no: number }>(sql, insertStatement, [
    plan.tenantId,
    plan.operationId,
    plan.intentKey,
    approved.action,
    approved.connectionId,
    hash.hash,
    hash.schemaVersion,
    JSON.stringify(hash.parts),
    randomUUID(),
    openDependencies,
    plan.supersedes?.operationId ?? null,
    plan.supersedes?.mode ?? null,
    targetOperationId ?? null,
    targetRef ?? null,
    plan.requestedBy ?? null,
    plan.approvedBy ?? null,
    seal(approved.payload, "payload"),
    seal(plan.request, "request"),
    plan.bodyDigest,
    JSON.stringify([...new Set(digests)]),
    key.keyId,
    actor,
    JSON.stringify(subjectTokens(key, approved).map(({ kind, token }) => ({ kind, token: token.toString("hex") }))),
  ]);
  if (row === undefined) return undefined;
  return { operationId: row.operation_id, state: row.state, eventNo: row.event_no, waiting: openDependencies > 0 };
}

/**
 * Records an intent, once. `created`; `existing` (same intent and hash: the same operation, noted in its history where
 * somebody else asks); or `conflict`, which names the parts that differ and changes nothing. Returns after the commit.
 *
 * Throws {@link PlanRefusedError} (`documents-unknown`, `already-superseded`, `target-unsuitable`, …) and
 * {@link NotFoundError} for what this tenant does not have.
 */
export async function plan(ledger: Ledger, request: Plan): Promise<PlanOutcome> {
  const hash = payloadHash(request.approved);
  // The rival that wins the insert commits before DO NOTHING returns, so a second statement sees it. It can only be
  // missing because a document is.
  const created = await retryRolledBack(() =>
    isRelated(request) ? planRelated(ledger, request, hash) : planAlone(ledger, ledger.sql, request, hash),
  );
  return created ?? (await existingOperation(ledger.sql, request, hash));
}

/**
 * Like {@link plan}, inside the caller's own transaction on the same database: intent and business row commit together
 * or not at all. Nothing is handed to a queue; the due loop finds the row after the commit.
 */
export async function planInside(ledger: Ledger, sql: TransactionSql, request: Plan): Promise<PlanOutcome> {
  const hash = payloadHash(request.approved);
  const created = isRelated(request)
    ? await planRelatedInside(ledger, sql, request, hash)
    : await planAlone(ledger, sql, request, hash);
  return created ?? (await existingOperation(sql, request, hash));
}

const isRelated = (request: Plan): boolean => request.supersedes !== undefined || request.approved.action !== "SEND";

async function planAlone(
  ledger: Ledger,
  sql: AnySql,
  request: Plan,
  hash: PayloadHash,
): Promise<PlanOutcome | undefined> {
  const operation = await insertPlanned(ledger, sql, {
    plan: request,
    hash,
    openDependencies: 0,
    actor: "producer",
  });
  return operation === undefined ? undefined : { kind: "created", operation, alsoPlanned: [] };
}

interface ExistingRow {
  operation_id: string;
  state: State;
  event_no: number;
  payload_hash: Buffer;
  hash_parts: Record<string, string>;
  requested_by: string | null;
  created_at: string;
  open_dependencies: number;
}

async function existingOperation(sql: AnySql, request: Plan, hash: PayloadHash): Promise<PlanOutcome> {
  const [row] = await sql<ExistingRow[]>`
    SELECT operation_id, state, event_no, payload_hash, hash_parts, requested_by, created_at, open_dependencies
    FROM signing_operation WHERE tenant_id = ${request.tenantId} AND intent_key = ${request.intentKey}`;
  if (row === undefined) {
    const [connection] = await sql`
      SELECT 1 FROM provider_connection
      WHERE tenant_id = ${request.tenantId} AND connection_id = ${request.approved.connectionId}`;
    if (connection === undefined)
      throw new PlanRefusedError("connection-unknown", "this tenant has no such connection");
    throw new PlanRefusedError("documents-unknown", "a document of the payload has not been uploaded for this tenant");
  }
  if (!row.payload_hash.equals(hash.hash)) {
    return { kind: "conflict", operationId: row.operation_id, differs: differingParts(row.hash_parts, hash.parts) };
  }
  const byAnother = request.requestedBy !== undefined && request.requestedBy !== row.requested_by;
  if (byAnother) await noteDuplicateRequest(sql, request.tenantId, row.operation_id);
  return {
    kind: "existing",
    operation: {
      operationId: row.operation_id,
      state: row.state,
      eventNo: row.event_no,
      waiting: row.open_dependencies > 0,
    },
    firstRequestedBy: row.requested_by,
    firstRequestedAt: row.created_at,
    byAnother,
  };
}

/** The same approval asked for by somebody else: a line in the history, nothing more (DESIGN §3). */
async function noteDuplicateRequest(sql: AnySql, tenantId: string, operationId: string): Promise<void> {
  await sql`
    WITH u AS (
      UPDATE signing_operation SET event_no = event_no + 1
      WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}
      RETURNING tenant_id, operation_id, event_no, state, attempt_no)
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no)
    SELECT tenant_id, operation_id, event_no, now(), 'duplicate_requested', state, state, 'duplicate-requested', 'producer', attempt_no FROM u`;
}

const maxTries = 5;

/** Planning is one transaction, so a deadlock or serialization failure undid all of it: it is simply done again. */
async function retryRolledBack<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const state = sqlState(error);
      if (tries >= maxTries || state === undefined || !certainlyRolledBack.has(state)) throw error;
    }
  }
}
