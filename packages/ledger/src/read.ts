import type { Ledger } from "./database.js";
import { holdInForce } from "./hold-in-force.js";
import type { SigningStatus } from "./signing-table.js";
import type { State } from "./state.js";

/** An operation as readers see it. Times are PostgreSQL text in UTC; see {@link toIso}. */
export interface OperationView {
  tenantId: string;
  operationId: string;
  intentKey: string;
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  connectionId: string;
  state: State;
  reason: string;
  providerRef: string | null;
  attemptNo: number;
  openAttempts: number;
  referencesSeen: number;
  evidenceNo: number;
  eventNo: number;
  absenceCount: number;
  dueAt: string | null;
  quietFrom: string | null;
  openDependencies: number;
  supersedes: string | null;
  supersededBy: string | null;
  targetOperationId: string | null;
  basis: string | null;
  cause: string | null;
  /** Set where a FINALIZE archived the sealed document: SHA-256 in hex, under which its bytes are stored. */
  archivedSha256: string | null;
  doubtful: boolean;
  /** What keeps a live operation from being sent or looked up now. */
  heldUpBy: "hold" | "pause" | "provider-down" | null;
  lastObservation: { kind?: string; cause?: string; code?: string; httpStatus?: number } | null;
  firstAttemptAt: string | null;
  requestedBy: string | null;
  approvedBy: string | null;
  createdAt: string;
  updatedAt: string;
  finishedAt: string | null;
  /** Statuses that the provider reported for references of this operation. */
  signingStatuses: SigningStatus[];
}

export interface HistoryLine {
  seq: number;
  at: string;
  kind: string;
  fromState: State | null;
  toState: State | null;
  reason: string;
  actor: string;
  attemptNo: number;
  evidence: Record<string, unknown> | null;
}

/** `2026-11-30 21:00:00.123456+00` → `2026-11-30T21:00:00.123456Z`. The ledger's connections run in UTC. */
export function toIso(instant: string): string {
  return instant.replace(" ", "T").replace(/\+00(:00)?$/, "Z");
}

const view = `SELECT o.tenant_id AS "tenantId", o.operation_id AS "operationId", o.intent_key AS "intentKey", o.action,
  o.connection_id AS "connectionId", o.state, o.reason, o.provider_ref AS "providerRef", o.attempt_no AS "attemptNo",
  o.open_attempts AS "openAttempts", o.references_seen AS "referencesSeen", o.evidence_no AS "evidenceNo", o.event_no AS "eventNo",
  o.absence_count AS "absenceCount", o.due_at AS "dueAt", o.quiet_from AS "quietFrom", o.open_dependencies AS "openDependencies",
  o.supersedes, o.superseded_by AS "supersededBy", o.target_operation_id AS "targetOperationId", o.basis, o.cause,
  encode(o.archived_sha256, 'hex') AS "archivedSha256", o.doubtful,
  CASE WHEN o.state IN ('PLANNED','UNKNOWN') THEN (SELECT CASE
      WHEN c.circuit_opened_at IS NOT NULL THEN 'provider-down'
      WHEN c.paused_until > now() THEN 'pause'
      WHEN o.state = 'PLANNED' AND ${holdInForce} THEN 'hold' END
    FROM provider_connection c WHERE c.tenant_id = o.tenant_id AND c.connection_id = o.connection_id) END AS "heldUpBy",
  o.last_observation AS "lastObservation", o.first_attempt_at AS "firstAttemptAt", o.requested_by AS "requestedBy",
  o.approved_by AS "approvedBy", o.created_at AS "createdAt", o.updated_at AS "updatedAt", o.finished_at AS "finishedAt",
  (SELECT COALESCE(jsonb_agg(s.status), '[]'::jsonb) FROM operation_reference r JOIN contract_signing s USING (tenant_id, connection_id, provider_ref)
    WHERE r.tenant_id = o.tenant_id AND r.operation_id = o.operation_id AND s.status IS NOT NULL) AS "signingStatuses"
  FROM signing_operation o`;

/** One operation of this tenant; undefined for another tenant's, exactly as for none. */
export async function getOperation(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
): Promise<OperationView | undefined> {
  const [row] = await ledger.sql.unsafe<OperationView[]>(
    `${view} WHERE o.tenant_id = $1 AND o.operation_id = $2`,
    [tenantId, operationId],
    { prepare: true },
  );
  return row;
}

/** Several operations in one read, for those who wait for many. */
export async function getOperations(
  ledger: Ledger,
  ids: readonly { tenantId: string; operationId: string }[],
): Promise<OperationView[]> {
  return await ledger.sql.unsafe<OperationView[]>(
    `${view} JOIN jsonb_to_recordset($1::text::jsonb) AS x("tenantId" text, "operationId" uuid)
     ON o.tenant_id = x."tenantId" AND o.operation_id = x."operationId"`,
    [JSON.stringify(ids)],
    { prepare: true },
  );
}

/** The whole history, in order. */
export async function getHistory(ledger: Ledger, tenantId: string, operationId: string): Promise<HistoryLine[]> {
  return await ledger.sql<HistoryLine[]>`
    SELECT seq, at, kind, from_state AS "fromState", to_state AS "toState", reason, actor, attempt_no AS "attemptNo", evidence
    FROM operation_event WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} ORDER BY seq`;
}

export interface OperationFilter {
  state?: State;
  intentKey?: string;
  action?: string;
  connectionId?: string;
  /** Operation id after which to go on; newest first. */
  cursor?: string;
  limit: number;
}

/** Operations of a tenant, newest first, one page. */
export async function listOperations(
  ledger: Ledger,
  tenantId: string,
  filter: OperationFilter,
): Promise<OperationView[]> {
  const conditions = ["o.tenant_id = $1"];
  const values: (string | number)[] = [tenantId];
  const where = (column: string, operator: string, value: string | undefined): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`o.${column} ${operator} $${values.length}`);
  };
  where("state", "=", filter.state);
  where("intent_key", "=", filter.intentKey);
  where("action", "=", filter.action);
  where("connection_id", "=", filter.connectionId);
  where("operation_id", "<", filter.cursor);
  values.push(filter.limit);
  return await ledger.sql.unsafe<OperationView[]>(
    `${view} WHERE ${conditions.join(" AND ")} ORDER BY o.operation_id DESC LIMIT $${values.length}`,
    values,
    { prepare: true },
  );
}

/** References seen for an operation, strongest role first. */
export async function getReferences(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
): Promise<{ providerRef: string; role: string; source: string; attemptNo: number }[]> {
  return await ledger.sql<{ providerRef: string; role: string; source: string; attemptNo: number }[]>`
    SELECT provider_ref AS "providerRef", role, source, attempt_no AS "attemptNo" FROM operation_reference
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}
    ORDER BY CASE role WHEN 'kept' THEN 0 WHEN 'evidence' THEN 1 WHEN 'draft' THEN 2 ELSE 3 END, seen_at`;
}

/** How many operations of each state, all tenants: for metrics and progress. Reads the live rows and counts the rest. */
export async function countByState(ledger: Ledger, tenantId?: string): Promise<Partial<Record<State, number>>> {
  const rows = await ledger.sql<{ state: State; count: number }[]>`
    SELECT state, count(*)::int AS count FROM signing_operation
    WHERE ${tenantId === undefined ? ledger.sql`true` : ledger.sql`tenant_id = ${tenantId}`} GROUP BY state`;
  return Object.fromEntries(rows.map((row) => [row.state, row.count]));
}
