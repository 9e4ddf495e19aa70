import type { Ledger, State } from "@countersign/ledger";

/** An operation as the demo looks at it. */
export interface OperationRow {
  readonly tenantId: string;
  readonly operationId: string;
  readonly action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  readonly state: State;
  readonly reason: string;
  readonly attemptNo: number;
  readonly waiting: boolean;
  readonly targetOperationId: string | null;
  readonly supersededBy: string | null;
  /** Did its history ever say UNKNOWN? */
  readonly wasUnknown: boolean;
  /** How its last reconciliation was settled, as its history says. */
  readonly settledBy: string | null;
}

/** Everything in the ledger; for small ledgers. */
export async function readOperations(ledger: Ledger): Promise<OperationRow[]> {
  return await ledger.sql<OperationRow[]>`
    SELECT o.tenant_id AS "tenantId", o.operation_id AS "operationId", o.action, o.state, o.reason,
      o.attempt_no AS "attemptNo", o.open_dependencies > 0 AS waiting, o.target_operation_id AS "targetOperationId",
      o.superseded_by AS "supersededBy", COALESCE(h.unknown, false) AS "wasUnknown", h.settled AS "settledBy"
    FROM signing_operation o
    LEFT JOIN LATERAL (
      SELECT bool_or(e.to_state = 'UNKNOWN' AND e.from_state <> 'UNKNOWN') AS unknown,
        (array_agg(e.evidence ->> 'settledBy' ORDER BY e.seq DESC)
          FILTER (WHERE e.from_state = 'RECONCILING' AND e.to_state <> 'UNKNOWN' AND e.evidence ? 'settledBy'))[1] AS settled
      FROM operation_event e WHERE e.tenant_id = o.tenant_id AND e.operation_id = o.operation_id) h ON true
    ORDER BY o.operation_id`;
}

/** A light look for progress: no history. */
export type OperationGlance = Pick<
  OperationRow,
  "tenantId" | "operationId" | "action" | "state" | "attemptNo" | "waiting" | "supersededBy"
>;

export async function glance(ledger: Ledger): Promise<OperationGlance[]> {
  return await ledger.sql<OperationGlance[]>`
    SELECT tenant_id AS "tenantId", operation_id AS "operationId", action, state, attempt_no AS "attemptNo",
      open_dependencies > 0 AS waiting, superseded_by AS "supersededBy"
    FROM signing_operation`;
}

/** How many of each state. */
export function countStates(rows: readonly { state: State }[]): Partial<Record<State, number>> {
  const counts: Partial<Record<State, number>> = {};
  for (const { state } of rows) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}
