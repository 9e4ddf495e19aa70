import type { Edge, Effect, Guard, Operand, TransitionInput } from "./edge-types.js";
import { type EdgeName, edges } from "./edges.js";
import { holdInForce } from "./hold-in-force.js";

/** The statement's one parameter: a row or rows as JSON. */
const inputColumns = `tenant_id text, operation_id uuid, owner uuid, evidence_no int, lease_ms float8, due_ms float8,
  provider_ref text, reference_role text, reference_source text, signing_status text, observation jsonb,
  closes int, raises int, shows int, began_at timestamptz, quiescence_ms float8, confirmations int, spacing_ms float8,
  send_before_ms float8, replay_within_ms float8, dead_ms float8, process uuid, doubts boolean, looked_at timestamptz, draft_ref text,
  archived_sha256 text, basis text, cause text, successor uuid, actor text, reason text, evidence jsonb`;

/** A row of `TransitionInput` as the statement reads it. */
export function toSqlRow(input: TransitionInput): Record<string, unknown> {
  return {
    tenant_id: input.tenantId,
    operation_id: input.operationId,
    owner: input.owner,
    evidence_no: input.evidenceNo,
    lease_ms: input.leaseMs,
    due_ms: input.dueMs ?? 0,
    provider_ref: input.providerRef,
    reference_role: input.referenceRole ?? "kept",
    reference_source: input.referenceSource ?? "answer",
    signing_status: input.signingStatus,
    observation: input.observation,
    closes: input.closes === true ? -1 : 0,
    raises: input.raises === true ? 1 : 0,
    shows: input.shows === true ? 1 : 0,
    began_at: input.beganAt,
    quiescence_ms: input.quiescenceMs,
    confirmations: input.confirmations,
    spacing_ms: input.spacingMs,
    send_before_ms: input.sendBeforeMs,
    replay_within_ms: input.replayWithinMs,
    dead_ms: input.deadMs,
    process: input.process,
    doubts: input.doubts === true,
    looked_at: input.lookedAt,
    draft_ref: input.draftRef,
    archived_sha256: input.archivedSha256,
    basis: input.basis,
    cause: input.cause,
    successor: input.successor,
    actor: input.actor,
    reason: input.reason,
    evidence: input.evidence,
  };
}

const interval = (name: string): string => `make_interval(secs => x.${name} / 1000.0)`;

function renderOperand(operand: Operand): string {
  if ("now" in operand) return operand.plusMs === undefined ? "now()" : `(now() + ${interval(operand.plusMs)})`;
  if ("connection" in operand) return `c.${operand.connection}`;
  if ("param" in operand) {
    if (operand.param === "archived_sha256") return "decode(x.archived_sha256, 'hex')";
    return operand.minusMs === undefined ? `x.${operand.param}` : `(x.${operand.param} - ${interval(operand.minusMs)})`;
  }
  if ("value" in operand) {
    return typeof operand.value === "string" ? `'${operand.value}'` : String(operand.value).toUpperCase();
  }
  if (operand.column === "last_observation_kind") return "(o.last_observation ->> 'kind')";
  if (operand.plusMs !== undefined) return `(o.${operand.column} + ${interval(operand.plusMs)})`;
  return operand.plus === undefined ? `o.${operand.column}` : `(o.${operand.column} + ${operand.plus})`;
}

const workerDead = `EXISTS (SELECT 1 FROM worker_process w WHERE w.process_id = o.lease_process AND w.heartbeat_at < now() - ${interval("dead_ms")})`;

function renderGuard(guard: Guard): string {
  if ("anyOf" in guard) return `(${guard.anyOf.map(renderGuard).join(" OR ")})`;
  if ("allOf" in guard) return `(${guard.allOf.map(renderGuard).join(" AND ")})`;
  if ("noHold" in guard) return `NOT ${holdInForce}`;
  if ("workerDead" in guard) return workerDead;
  const left = renderOperand(guard.left);
  if ("right" in guard) return `${left} ${guard.is} ${renderOperand(guard.right)}`;
  return guard.is === "null" ? `${left} IS NULL` : `${left} IS NOT NULL`;
}

function renderEffect(column: string, effect: Effect): string {
  if ("set" in effect) return `${column} = ${renderOperand(effect.set)}`;
  if ("keepOr" in effect) return `${column} = COALESCE(o.${column}, ${renderOperand(effect.keepOr)})`;
  if ("latest" in effect) return `${column} = GREATEST(o.${column}, ${renderOperand(effect.latest)})`;
  if ("or" in effect) return `${column} = o.${column} OR x.${effect.or}`;
  if ("paramOrKeep" in effect) return `${column} = COALESCE(x.${effect.paramOrKeep}, o.${column})`;
  const amount = typeof effect.add === "number" ? String(effect.add) : `x.${effect.add}`;
  return `${column} = o.${column} + ${amount}`;
}

const needsConnection = (guards: readonly Guard[]): boolean => JSON.stringify(guards).includes('"connection"');

const historyLine = (edge: Edge): string => `, history AS (
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'transition', '${edge.from}', '${edge.to}', reason, x_actor, attempt_no, x_evidence FROM u)`;

/** The reference joins the operation's own; one of another operation is refused by the trigger (CS004). */
const referenceRecord = `, reference AS (
    INSERT INTO operation_reference AS r (tenant_id, connection_id, provider_ref, operation_id, role, source, attempt_no)
    SELECT tenant_id, connection_id, x_provider_ref, operation_id, x_role, x_source, attempt_no FROM u
    WHERE x_provider_ref IS NOT NULL AND action = 'SEND'
    ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE
      SET role = CASE WHEN EXCLUDED.role = 'kept' THEN 'kept' ELSE r.role END, operation_id = EXCLUDED.operation_id)`;

/** SEND binds its reference and begins at SENT; a VOID's end closes the target's row unless something final stands there. */
const signingRecord = `, signing AS (
    INSERT INTO contract_signing AS s (tenant_id, connection_id, provider_ref, operation_id, status, status_at)
    SELECT tenant_id, connection_id, x_provider_ref, CASE WHEN action = 'SEND' THEN operation_id ELSE target_operation_id END,
           CASE WHEN action = 'SEND' OR target_operation_id IS NOT NULL THEN x_signing_status END, now()
    FROM u WHERE x_signing_status IS NOT NULL
    ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE SET
      operation_id = COALESCE(s.operation_id, EXCLUDED.operation_id),
      status = CASE WHEN s.status IS NULL OR s.status = 'STAGED' THEN EXCLUDED.status
                    WHEN EXCLUDED.status = 'VOIDED' AND s.status IN ('SENT','VIEWED','PARTIALLY_SIGNED') THEN 'VOIDED'
                    ELSE s.status END,
      updated_at = now())`;

const ticketRecord = (kind: string): string => `, opened AS (
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, details, due_at)
    SELECT u.tenant_id, gen_random_uuid(), '${kind}', 'operation', u.operation_id::text, t.ticket_owners ->> '${kind}', u.reason, u.x_evidence,
           now() + make_interval(mins => COALESCE((t.thresholds ->> '${kind}')::int, 60))
    FROM u JOIN tenant t ON t.tenant_id = u.tenant_id
    ON CONFLICT DO NOTHING)`;

/** A policy written for this is acted on by itself, also where the process dies right after this commit. */
const policyRecord = `, by_policy AS (
    INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after, not_before)
    SELECT DISTINCT ON (u.tenant_id, u.operation_id) u.tenant_id, gen_random_uuid(), 'policy', u.operation_id::text || ' ' || u.event_no,
      u.operation_id::text, GREATEST(now(), u.quiet_from + make_interval(secs => COALESCE(u.x_quiescence_ms, 0) / 1000.0)),
      GREATEST(now(), u.quiet_from + make_interval(secs => COALESCE(u.x_quiescence_ms, 0) / 1000.0))
    FROM u JOIN tenant_policy p ON p.tenant_id = u.tenant_id AND p.action = u.action AND p.revoked_at IS NULL
      AND p.policy <> 'accept-replay-risk' AND (p.connection_id IS NULL OR p.connection_id = u.connection_id)
    ON CONFLICT DO NOTHING)`;

/** Columns every transition returns. */
const returned = `u.tenant_id, u.operation_id, u.state, u.action, u.attempt_no, u.evidence_no, u.event_no, u.dependants,
  u.open_attempts, u.references_seen, u.absence_count, u.due_at, u.connection_id, u.provider_key, u.payload_hash, u.target_ref,
  u.target_operation_id, u.superseded_by, u.target_superseded, u.last_observation, u.quiet_from, u.first_attempt_at,
  u.lease_owner, u.doubtful, u.replaying,
  u.draft_ref, u.looked_at, u.created_at, u.reason, now() AS db_now`;

/**
 * The whole of an edge as one statement: guard, effect, history and side records in one commit. `one` reads a single
 * object, `many` an array: the planner takes the one for one row and goes by the primary key, while it takes an array for
 * a hundred and may read every row of a state.
 */
export function edgeStatement(name: EdgeName, rows: "one" | "many"): string {
  const edge: Edge = edges[name];
  const records = edge.records ?? [];
  const connection = needsConnection(edge.guard);
  const guards = edge.guard.map(renderGuard);
  if (connection) guards.unshift("c.tenant_id = o.tenant_id", "c.connection_id = o.connection_id");
  const sets = Object.entries(edge.effect).map(([column, effect]) => renderEffect(column, effect));
  const withRequest = records.includes("request");
  const input = rows === "one" ? "jsonb_to_record" : "jsonb_to_recordset";
  return `WITH x AS (SELECT * FROM ${input}($1::text::jsonb) AS x(${inputColumns})),
  u AS (
    UPDATE signing_operation o SET state = '${edge.to}', reason = x.reason, event_no = o.event_no + 1, dispatches = 0, updated_at = now(),
      ${sets.join(",\n      ")}
    FROM x${connection ? ", provider_connection c" : ""}
    WHERE o.tenant_id = x.tenant_id AND o.operation_id = x.operation_id AND o.state = '${edge.from}'
      ${guards.map((guard) => `AND ${guard}`).join("\n      ")}
    RETURNING o.*, x.actor AS x_actor, x.evidence AS x_evidence, x.provider_ref AS x_provider_ref, x.reference_role AS x_role,
      x.reference_source AS x_source, x.signing_status AS x_signing_status,
      x.quiescence_ms AS x_quiescence_ms
  )${historyLine(edge)}${records.includes("reference") ? referenceRecord : ""}${records.includes("signing") ? signingRecord : ""}${
    records.includes("ticket") ? ticketRecord(edge.ticket ?? "needs-review") : ""
  }${records.includes("policy") ? policyRecord : ""}
  SELECT ${returned}${withRequest ? ", p.payload, p.request, p.body_digest, p.key_id, p.schema_version" : ""}
  FROM u${withRequest ? " JOIN approved_payload p ON p.tenant_id = u.tenant_id AND p.operation_id = u.operation_id" : ""}`;
}
