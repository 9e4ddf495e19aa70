import { type AnySql, type Ledger, run } from "./database.js";
import { edgeStatement, toSqlRow } from "./edge-sql.js";
import type { TransitionInput } from "./edge-types.js";
import { type EdgeName, edges } from "./edges.js";
import { holdInForce } from "./hold-in-force.js";
import type { State } from "./state.js";

/**
 * Every conditional write of `state` (DESIGN §2): one function per edge, named for it. The database arbitrates: each is
 * one UPDATE whose WHERE is the edge's guard, and each says whether it was applied. Nobody else writes `state`.
 */

/** The row as the transition left it. Times are PostgreSQL text; `db_now` is the statement's time. */
export interface TransitionRow {
  tenant_id: string;
  operation_id: string;
  state: State;
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  attempt_no: number;
  evidence_no: number;
  event_no: number;
  dependants: number;
  open_attempts: number;
  references_seen: number;
  absence_count: number;
  due_at: string | null;
  connection_id: string;
  provider_key: string;
  payload_hash: Buffer;
  target_ref: string | null;
  target_operation_id: string | null;
  superseded_by: string | null;
  target_superseded: boolean;
  last_observation: Record<string, unknown> | null;
  quiet_from: string | null;
  first_attempt_at: string | null;
  lease_owner: string | null;
  doubtful: boolean;
  replaying: boolean;
  draft_ref: string | null;
  looked_at: string | null;
  created_at: string;
  reason: string;
  db_now: string;
}

/** A submit claim also brings what to send, still encrypted. */
export interface ClaimedRow extends TransitionRow {
  payload: Buffer | null;
  request: Buffer | null;
  body_digest: Buffer;
  key_id: string;
  schema_version: number;
}

/** What stood there instead, read after the write missed. */
export interface Found {
  state: State;
  attemptNo: number;
  evidenceNo: number;
  leaseOwner: string | null;
  sendBeforePassed: boolean;
  /** ms until the row's own `not_before`, or until its connection's pause ends; 0 where neither stands in the way. */
  waitMs: number;
  /** The provider was found down: only a probe calls until it answers. */
  circuitOpen: boolean;
  /** A hold of the tenant, the connection or the action is in force. */
  held: boolean;
}

export type Outcome<Row = TransitionRow> = { applied: true; row: Row } | { applied: false; found: Found | undefined };

const statements = new Map<EdgeName, { one: string; many: string }>();
for (const name of Object.keys(edges)) {
  if (isEdgeName(name)) statements.set(name, { one: edgeStatement(name, "one"), many: edgeStatement(name, "many") });
}

function isEdgeName(name: string): name is EdgeName {
  return name in edges;
}

/** What stands in a row; undefined where this tenant has no such operation. */
export async function findState(sql: AnySql, tenantId: string, operationId: string): Promise<Found | undefined> {
  const [row] = await sql<
    {
      state: State;
      attempt_no: number;
      evidence_no: number;
      lease_owner: string | null;
      passed: boolean;
      wait_ms: number;
      circuit_open: boolean;
      held: boolean;
    }[]
  >`SELECT o.state, o.attempt_no, o.evidence_no, o.lease_owner,
           COALESCE(o.send_before <= now(), false) AS passed,
           GREATEST(0, EXTRACT(EPOCH FROM (LEAST(COALESCE(GREATEST(o.not_before, c.paused_until), now()), now() + interval '5 minutes') - now())) * 1000)::float8 AS wait_ms,
           c.circuit_opened_at IS NOT NULL AS circuit_open,
           ${sql.unsafe(holdInForce)} AS held
    FROM signing_operation o
    JOIN provider_connection c ON c.tenant_id = o.tenant_id AND c.connection_id = o.connection_id
    WHERE o.tenant_id = ${tenantId} AND o.operation_id = ${operationId}`;
  if (row === undefined) return undefined;
  return {
    state: row.state,
    attemptNo: row.attempt_no,
    evidenceNo: row.evidence_no,
    leaseOwner: row.lease_owner,
    sendBeforePassed: row.passed,
    waitMs: row.wait_ms ?? 0,
    circuitOpen: row.circuit_open,
    held: row.held,
  };
}

/**
 * Applies one edge to many rows in one statement; answers in the order of the input. Rows that missed carry what was
 * found. All or nothing only on a database error, never because one row missed.
 */
async function applyEdge<Row extends TransitionRow>(
  ledger: Ledger,
  name: EdgeName,
  inputs: readonly TransitionInput[],
): Promise<Outcome<Row>[]> {
  const text = statements.get(name);
  if (text === undefined || inputs.length === 0) return [];
  // Locks are taken in one order, so that two batches can't wait for each other.
  const ordered = [...inputs].sort((a, b) => (a.operationId < b.operationId ? -1 : 1));
  const [only] = ordered;
  const rows =
    ordered.length === 1 && only !== undefined
      ? await run<Row>(ledger.sql, text.one, [JSON.stringify(toSqlRow(only))])
      : await run<Row>(ledger.sql, text.many, [JSON.stringify(ordered.map(toSqlRow))]);
  if (rows.length > 0) ledger.transitioned(name, rows.length);
  const applied = new Map(rows.map((row) => [`${row.tenant_id} ${row.operation_id}`, row]));
  return Promise.all(
    inputs.map(async ({ tenantId, operationId }): Promise<Outcome<Row>> => {
      const row = applied.get(`${tenantId} ${operationId}`);
      if (row !== undefined) return { applied: true, row };
      return { applied: false, found: await findState(ledger.sql, tenantId, operationId) };
    }),
  );
}

/** One edge for one row inside a planning transaction; whether it was applied. */
export async function transitionInside(sql: AnySql, name: EdgeName, input: TransitionInput): Promise<boolean> {
  const text = statements.get(name);
  if (text === undefined) return false;
  const rows = await run<TransitionRow>(sql, text.one, [JSON.stringify(toSqlRow(input))]);
  return rows.length === 1;
}

async function applyOne<Row extends TransitionRow>(
  ledger: Ledger,
  name: EdgeName,
  input: TransitionInput,
): Promise<Outcome<Row>> {
  const [outcome] = await applyEdge<Row>(ledger, name, [input]);
  return outcome ?? { applied: false, found: undefined };
}

type Needs<Keys extends keyof TransitionInput> = TransitionInput & {
  [Key in Keys]-?: NonNullable<TransitionInput[Key]>;
};

/** PLANNED → IN_FLIGHT. `owner` is a fresh UUID per claim; `leaseMs` the lease. Not applied: make no provider call. */
export const claimForSubmit = (
  ledger: Ledger,
  rows: readonly Needs<"owner" | "leaseMs">[],
): Promise<Outcome<ClaimedRow>[]> => applyEdge<ClaimedRow>(ledger, "claimForSubmit", rows);

/** PLANNED → UNKNOWN where `send_before` has passed. */
export const sendBeforePassed = (ledger: Ledger, row: TransitionInput) => applyOne(ledger, "sendBeforePassed", row);

/** PLANNED → SUPERSEDED. */
export const supersedePlanned = (ledger: Ledger, row: TransitionInput) => applyOne(ledger, "supersedePlanned", row);

/**
 * IN_FLIGHT → CONFIRMED under the owner's fence, on the evidence it knew. Not applied while the owner still stands: newer
 * evidence arrived, look and confirm again with the same answer. Throws CS004 where another operation has the reference.
 */
export const confirm = (
  ledger: Ledger,
  rows: readonly Needs<"owner" | "evidenceNo" | "providerRef" | "observation">[],
): Promise<Outcome[]> => applyEdge(ledger, "confirm", rows);

/** IN_FLIGHT → TERMINAL_FAILED. Not applied: an earlier attempt or a reference is open, so the refusal proves nothing. */
export const refuse = (ledger: Ledger, row: Needs<"owner" | "evidenceNo" | "observation">) =>
  applyOne(ledger, "refuse", row);

/** IN_FLIGHT → TERMINAL_FAILED: a safe replay was refused, so the key proves that no earlier attempt was committed. */
export const refuseReplay = (ledger: Ledger, row: Needs<"owner" | "evidenceNo" | "observation">) =>
  applyOne(ledger, "refuseReplay", row);

/** IN_FLIGHT → NEEDS_REVIEW for a refused VOID that something depends on. */
export const voidRefused = (ledger: Ledger, row: Needs<"owner" | "evidenceNo" | "observation">) =>
  applyOne(ledger, "voidRefused", row);

/** IN_FLIGHT → UNKNOWN with its observation. Not applied: the lease is no longer this owner's; record late evidence. */
export const markUnknown = (ledger: Ledger, row: Needs<"owner" | "observation">) =>
  applyOne(ledger, "markUnknown", row);

/** IN_FLIGHT → NEEDS_REVIEW: what is stored is no longer what was approved. */
export const payloadChanged = (ledger: Ledger, row: Needs<"owner">) => applyOne(ledger, "payloadChanged", row);

/** UNKNOWN → RECONCILING. */
export const claimForReconcile = (ledger: Ledger, row: Needs<"owner" | "leaseMs">) =>
  applyOne(ledger, "claimForReconcile", row);

/** UNKNOWN → RECONCILING for many rows in one statement; answers in the order of the input. */
export const claimManyForReconcile = (ledger: Ledger, rows: readonly Needs<"owner" | "leaseMs">[]) =>
  applyEdge(ledger, "claimForReconcile", rows);

/** RECONCILING → CONFIRMED. */
export const confirmFound = (ledger: Ledger, row: Needs<"owner" | "evidenceNo" | "providerRef" | "basis">) =>
  applyOne(ledger, "confirmFound", row);

type Absence = Needs<"owner" | "evidenceNo" | "beganAt" | "quiescenceMs" | "spacingMs">;
type ProvenAbsence = Absence & Needs<"confirmations">;

/** RECONCILING → PLANNED by proven absence; the same identity, key and bytes are sent again. */
export const absentSoPlanned = (ledger: Ledger, row: ProvenAbsence & Needs<"sendBeforeMs">) =>
  applyOne(ledger, "absentSoPlanned", row);

/** RECONCILING → PLANNED because the record of every attempt shows that none left a request. */
export const declinedSoPlanned = (ledger: Ledger, row: Needs<"owner" | "evidenceNo">) =>
  applyOne(ledger, "declinedSoPlanned", row);

/** RECONCILING → PLANNED where sending the same bytes under the same key again is safe (capability or written policy). */
export const replaySafe = (
  ledger: Ledger,
  row: Needs<"owner" | "evidenceNo" | "beganAt" | "quiescenceMs" | "replayWithinMs">,
) => applyOne(ledger, "replaySafe", row);

/** RECONCILING → PLANNED: a draft of ours exists, only its second step is still to be made. */
export const draftContinued = (ledger: Ledger, row: Needs<"owner" | "evidenceNo" | "draftRef">) =>
  applyOne(ledger, "draftContinued", row);

/** RECONCILING → SUPERSEDED by proven absence of a superseded operation. */
export const absentSoSuperseded = (ledger: Ledger, row: ProvenAbsence) => applyOne(ledger, "absentSoSuperseded", row);

/** RECONCILING → SUPERSEDED where every attempt of a superseded operation is closed. */
export const declinedSoSuperseded = (ledger: Ledger, row: Needs<"owner" | "evidenceNo">) =>
  applyOne(ledger, "declinedSoSuperseded", row);

/** RECONCILING → TERMINAL_FAILED by proven absence after a definitive refusal. */
export const absentAndRefused = (ledger: Ledger, row: ProvenAbsence) => applyOne(ledger, "absentAndRefused", row);

/** RECONCILING → TERMINAL_FAILED where every attempt is closed and the last was refused. */
export const refusedByAll = (ledger: Ledger, row: Needs<"owner" | "evidenceNo">) =>
  applyOne(ledger, "refusedByAll", row);

/** RECONCILING → UNKNOWN, one absence counted. */
export const absentOnce = (ledger: Ledger, row: Absence) => applyOne(ledger, "absentOnce", row);

/** RECONCILING → UNKNOWN, nothing learnt that moves it. */
export const inconclusive = (ledger: Ledger, row: Needs<"owner">) => applyOne(ledger, "inconclusive", row);

/** RECONCILING → NEEDS_REVIEW, with its ticket. */
export const conflict = (ledger: Ledger, row: Needs<"owner" | "evidenceNo">) => applyOne(ledger, "conflict", row);

/** NEEDS_REVIEW → CONFIRMED by a named person or policy, on the evidence that they saw. */
export const decideConfirmed = (ledger: Ledger, row: Needs<"evidenceNo" | "providerRef" | "basis">) =>
  applyOne(ledger, "decideConfirmed", row);

/** NEEDS_REVIEW → SUPERSEDED by a named person or policy, on the evidence that they saw. */
export const decideSuperseded = (ledger: Ledger, row: Needs<"evidenceNo" | "basis">) =>
  applyOne(ledger, "decideSuperseded", row);

/** Applies an edge by name: the sweeper's, and what tests of the whole table use. */
export const transition = (ledger: Ledger, edge: EdgeName, row: TransitionInput) => applyOne(ledger, edge, row);
