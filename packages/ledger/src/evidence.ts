import { type AnySql, run } from "./database.js";
import type { State } from "./state.js";

/**
 * Evidence is a write on the row (DESIGN §3): one UPDATE, `evidence_no + 1`, in the commit that stores the evidence. What
 * it does depends on the state it finds, and on whether it shows a request of ours or only restarts quiescence.
 */
export interface Evidence {
  tenantId: string;
  operationId: string;
  /** Which attempt it speaks of, where that is known. */
  attemptNo?: number;
  /** A reference that it shows, of this operation's connection. */
  providerRef?: string;
  role?: "draft" | "evidence";
  /** What the provider says of that reference now, where it was asked. */
  signingStatus?: string;
  source: "mid-call" | "late-answer" | "webhook" | "lookup";
  /** A late answer, for the record. */
  observation?: { kind: string };
  /** A late answer that proves its attempt left no request; only counted while that attempt is the last one. */
  closesAttempt?: boolean;
  actor: string;
  reason: string;
  /** Ids, codes, counts, timings. */
  details?: object;
}

export interface EvidenceEffect {
  /** State afterwards: only PLANNED moves. */
  to: State | "same";
  /** Due at once: somebody must look again. */
  dueNow: boolean;
  /** `quiet_from` moves forward to this moment: an attempt ended only now. */
  restartsQuiescence: boolean;
  /** A reference that is not the kept one opens this ticket. */
  ticket: "duplicate" | "none";
}

const recorded: EvidenceEffect = { to: "same", dueNow: false, restartsQuiescence: true, ticket: "none" };

const ended: EvidenceEffect = { to: "same", dueNow: false, restartsQuiescence: false, ticket: "duplicate" };

/** DESIGN §3, "What an event, a lookup or a late answer that shows a request of ours does, by state". */
export const evidenceEffects: Record<State, EvidenceEffect> = {
  PLANNED: { to: "UNKNOWN", dueNow: true, restartsQuiescence: true, ticket: "none" },
  IN_FLIGHT: { ...recorded, restartsQuiescence: false },
  UNKNOWN: { ...recorded, dueNow: true },
  RECONCILING: recorded,
  NEEDS_REVIEW: recorded,
  CONFIRMED: ended,
  TERMINAL_FAILED: ended,
  SUPERSEDED: ended,
};

const statesWhere = (test: (effect: EvidenceEffect) => boolean): string =>
  Object.entries(evidenceEffects)
    .filter(([, effect]) => test(effect))
    .map(([state]) => `'${state}'`)
    .join(", ");

/** $1: one row as JSON. Locks the row, writes it, its history line, the reference and, where due, a duplicate ticket. */
const statement = `WITH x AS (SELECT * FROM jsonb_to_record($1::text::jsonb) AS x(tenant_id text, operation_id uuid, attempt_no int,
    provider_ref text, role text, source text, signing_status text, observation jsonb, closes boolean, actor text, reason text, details jsonb)),
  before AS (
    SELECT o.state, o.provider_ref AS kept_ref, o.tenant_id, o.operation_id
    FROM signing_operation o JOIN x ON o.tenant_id = x.tenant_id AND o.operation_id = x.operation_id
    FOR UPDATE OF o),
  u AS (
    UPDATE signing_operation o SET
      state = CASE WHEN o.state = 'PLANNED' THEN 'UNKNOWN' ELSE o.state END,
      reason = CASE WHEN o.state = 'PLANNED' THEN x.reason ELSE o.reason END,
      evidence_no = o.evidence_no + 1,
      references_seen = o.references_seen + CASE WHEN x.provider_ref IS NOT NULL AND o.action = 'SEND' THEN 1 ELSE 0 END,
      open_attempts = CASE
        WHEN o.state = 'PLANNED' AND o.attempt_no > 0 THEN GREATEST(o.open_attempts, 1)
        WHEN x.closes AND x.attempt_no = o.attempt_no AND o.state IN ('UNKNOWN','RECONCILING') THEN GREATEST(o.open_attempts - 1, 0)
        ELSE o.open_attempts END,
      last_observation = CASE WHEN x.observation IS NOT NULL AND x.attempt_no = o.attempt_no AND o.state IN ('UNKNOWN','RECONCILING')
        THEN x.observation ELSE o.last_observation END,
      doubtful = o.doubtful OR o.state = 'PLANNED',
      absence_count = 0,
      absence_began_at = NULL,
      proof_seq = CASE WHEN o.state = 'PLANNED' THEN NULL ELSE o.proof_seq END,
      send_before = CASE WHEN o.state = 'PLANNED' THEN NULL ELSE o.send_before END,
      due_at = CASE WHEN o.state IN (${statesWhere((effect) => effect.dueNow)}) THEN now() ELSE o.due_at END,
      not_before = CASE WHEN o.state IN (${statesWhere((effect) => effect.dueNow)}) THEN NULL ELSE o.not_before END,
      quiet_from = CASE WHEN o.state IN (${statesWhere((effect) => effect.restartsQuiescence)})
        THEN GREATEST(o.quiet_from, now()) ELSE o.quiet_from END,
      event_no = o.event_no + 1,
      dispatches = 0,
      updated_at = now()
    FROM x, before
    WHERE o.tenant_id = x.tenant_id AND o.operation_id = x.operation_id
      AND NOT (before.state = 'CONFIRMED' AND x.provider_ref IS NOT DISTINCT FROM before.kept_ref)
    RETURNING o.*, before.state AS from_state, before.kept_ref, x.provider_ref AS x_ref, x.role AS x_role, x.source AS x_source, x.signing_status AS x_signing_status,
      x.actor AS x_actor, x.reason AS x_reason, x.details AS x_details, x.attempt_no AS x_attempt),
  history AS (
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), CASE WHEN from_state = state THEN 'evidence' ELSE 'transition' END,
           from_state, state, x_reason, x_actor, COALESCE(x_attempt, attempt_no), x_details FROM u),
  reference AS (
    INSERT INTO operation_reference AS r (tenant_id, connection_id, provider_ref, operation_id, role, source, attempt_no)
    SELECT tenant_id, connection_id, x_ref, operation_id, x_role, x_source, COALESCE(x_attempt, attempt_no) FROM u
    WHERE x_ref IS NOT NULL AND action = 'SEND'
    ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE
      SET operation_id = EXCLUDED.operation_id,
          role = CASE WHEN r.role = 'draft' THEN EXCLUDED.role ELSE r.role END),
  staged AS (
    INSERT INTO contract_signing AS s (tenant_id, connection_id, provider_ref, operation_id, status, status_at)
    SELECT tenant_id, connection_id, x_ref, operation_id, COALESCE(x_signing_status, 'STAGED'), now() FROM u
    WHERE x_ref IS NOT NULL AND action = 'SEND' AND (x_role = 'draft' OR x_signing_status IS NOT NULL)
    ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE
      SET operation_id = COALESCE(s.operation_id, EXCLUDED.operation_id), status = COALESCE(s.status, EXCLUDED.status), updated_at = now()),
  opened AS (
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, details, due_at)
    SELECT u.tenant_id, gen_random_uuid(), 'duplicate', 'operation', u.operation_id::text, t.ticket_owners ->> 'duplicate',
           CASE WHEN u.from_state = 'CONFIRMED' THEN 'another-reference' ELSE 'failed-yet-exists' END, u.x_details,
           now() + make_interval(mins => COALESCE((t.thresholds ->> 'duplicate')::int, 60))
    FROM u JOIN tenant t ON t.tenant_id = u.tenant_id
    WHERE u.x_ref IS NOT NULL AND u.action = 'SEND' AND u.from_state IN (${statesWhere((effect) => effect.ticket === "duplicate")})
    ON CONFLICT DO NOTHING RETURNING tenant_id, subject_id),
  by_policy AS (
    INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after, not_before)
    SELECT DISTINCT ON (u.operation_id) u.tenant_id, gen_random_uuid(), 'policy', u.operation_id::text || ' ' || u.event_no, u.operation_id::text, now(), now()
    FROM u JOIN opened ON opened.tenant_id = u.tenant_id
    JOIN tenant_policy p ON p.tenant_id = u.tenant_id AND p.action = u.action AND p.revoked_at IS NULL AND p.policy = 'accept-duplicate-and-void'
      AND (p.connection_id IS NULL OR p.connection_id = u.connection_id)
    ON CONFLICT DO NOTHING),
  told AS (
    UPDATE ticket t SET details = COALESCE(t.details, '{}'::jsonb) || jsonb_build_object('evidenceSince', u.x_reason, 'evidenceNo', u.evidence_no)
    FROM u WHERE u.from_state = 'NEEDS_REVIEW' AND t.tenant_id = u.tenant_id AND t.kind = 'needs-review' AND t.subject_kind = 'operation'
      AND t.subject_id = u.operation_id::text AND t.resolved_at IS NULL)
  SELECT u.state, u.from_state, u.evidence_no, u.event_no FROM u`;

export interface EvidenceRecorded {
  fromState: State;
  state: State;
  evidenceNo: number;
  eventNo: number;
}

/**
 * Records evidence. undefined where there was nothing to record: no such operation, or a CONFIRMED one whose own
 * reference this is. Throws CS004 where the reference belongs to another operation.
 */
export async function recordEvidence(sql: AnySql, evidence: Evidence): Promise<EvidenceRecorded | undefined> {
  const [row] = await run<{ state: State; from_state: State; evidence_no: number; event_no: number }>(sql, statement, [
    JSON.stringify({
      tenant_id: evidence.tenantId,
      operation_id: evidence.operationId,
      attempt_no: evidence.attemptNo,
      provider_ref: evidence.providerRef,
      role: evidence.role ?? "evidence",
      source: evidence.source,
      signing_status: evidence.signingStatus,
      observation: evidence.observation,
      closes: evidence.closesAttempt === true,
      actor: evidence.actor,
      reason: evidence.reason,
      details: evidence.details,
    }),
  ]);
  if (row === undefined) return undefined;
  return { fromState: row.from_state, state: row.state, evidenceNo: row.evidence_no, eventNo: row.event_no };
}
