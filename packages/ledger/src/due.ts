import { type AnySql, type Ledger, run } from "./database.js";
import type { State } from "./state.js";

/**
 * The one due loop's reads and writes (DESIGN §4): what is due is handed to its queue and its `due_at` moves one
 * redispatch interval ahead, as insurance. No leader; SKIP LOCKED lets every worker process run it.
 */

export type DueQueue = "submit" | "reconcile" | "webhook-apply";

export interface DueJob {
  queue: DueQueue;
  tenantId: string;
  /** `operation`, `inbox` or `work`. */
  kind: string;
  subjectId: string;
  /** Line of the history at which it became due: a new one is new work. */
  eventNo: number;
  /** Hand-overs since then. */
  dispatches: number;
}

/** What a swept row becomes: UNKNOWN, never PLANNED. `quiet_from` stays where the claim put it. */
const sweepInto = (reason: string, actor: string) => `
  u AS (
    UPDATE signing_operation o SET state = 'UNKNOWN', reason = '${reason}', lease_owner = NULL, lease_expires_at = NULL, lease_process = NULL,
      due_at = now() + make_interval(secs => $2::float8 / 1000), not_before = NULL, event_no = o.event_no + 1, dispatches = 0, updated_at = now(),
      doubtful = o.doubtful OR e.state = 'IN_FLIGHT',
      last_observation = CASE WHEN e.state = 'IN_FLIGHT' THEN jsonb_build_object('kind', 'ambiguous', 'cause', '${reason}') ELSE o.last_observation END
    FROM lost e
    WHERE o.tenant_id = e.tenant_id AND o.operation_id = e.operation_id AND o.state = e.state AND o.lease_owner = e.lease_owner
    RETURNING o.tenant_id, o.operation_id, o.event_no, o.dispatches, o.attempt_no, e.state AS from_state, e.lease_owner),
  history AS (
    INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
    SELECT tenant_id, operation_id, event_no, now(), 'transition', from_state, 'UNKNOWN', '${reason}', '${actor}', attempt_no,
      jsonb_build_object('owner', lease_owner) FROM u)
  SELECT tenant_id, operation_id, event_no, dispatches, attempt_no, from_state FROM u`;

/** Edges `sweepSubmit` and `sweepReconcile` for many rows at once; SKIP LOCKED, so every process may run it. */
const sweepStatement = `WITH lost AS (
    SELECT tenant_id, operation_id, state, lease_owner FROM signing_operation
    WHERE due_at <= now() AND state IN ('IN_FLIGHT','RECONCILING') AND lease_expires_at <= now()
    ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED),${sweepInto("lease-expired", "sweeper")}`;

/** Edges `sweepDeadSubmit` and `sweepDeadReconcile`. Goes from the silent processes to the few rows that they hold. */
const sweepDeadStatement = `WITH dead AS MATERIALIZED (
    SELECT process_id FROM worker_process WHERE stopped_at IS NULL AND heartbeat_at < now() - make_interval(secs => $3::float8 / 1000)),
  lost AS (
    SELECT o.tenant_id, o.operation_id, o.state, o.lease_owner FROM signing_operation o
    WHERE o.lease_process IN (SELECT process_id FROM dead) AND o.state IN ('IN_FLIGHT','RECONCILING')
    LIMIT $1::int FOR UPDATE OF o SKIP LOCKED),${sweepInto("worker-died", "sweeper")}`;

interface DueRow {
  tenant_id: string;
  operation_id: string;
  event_no: number;
  dispatches: number;
  state: State;
}

/** A row that was taken from whoever held it, with what it was. */
export interface SweptJob extends DueJob {
  attemptNo: number;
  from: State;
  reason: "lease-expired" | "worker-died";
}

type SweptRow = DueRow & { attempt_no: number; from_state: State };

const toSwept = (row: SweptRow, reason: SweptJob["reason"]): SweptJob => ({
  ...toJob(row, "reconcile"),
  attemptNo: row.attempt_no,
  from: row.from_state,
  reason,
});

/** Swept rows, now UNKNOWN, to hand to `reconcile`. */
export async function sweepExpiredLeases(ledger: Ledger, limit: number, redispatchMs: number): Promise<SweptJob[]> {
  const rows = await run<SweptRow>(ledger.sql, sweepStatement, [limit, redispatchMs]);
  return rows.map((row) => toSwept(row, "lease-expired"));
}

/**
 * Rows of processes that have been silent for `deadMs`, now UNKNOWN, to hand to `reconcile`. Presence may confirm them at
 * once; absence still waits for the lease and quiescence, since a silent process may only be slow.
 */
export async function sweepDeadWorkers(
  ledger: Ledger,
  limit: number,
  redispatchMs: number,
  deadMs: number,
): Promise<SweptJob[]> {
  const rows = await run<SweptRow>(ledger.sql, sweepDeadStatement, [limit, redispatchMs, deadMs]);
  return rows.map((row) => toSwept(row, "worker-died"));
}

const toJob = (row: DueRow, queue: DueQueue): DueJob => ({
  queue,
  tenantId: row.tenant_id,
  kind: "operation",
  subjectId: row.operation_id,
  eventNo: row.event_no,
  dispatches: row.dispatches,
});

const visitStatement = `WITH due AS (
    SELECT tenant_id, operation_id FROM signing_operation
    WHERE due_at <= now() AND state IN ('PLANNED','UNKNOWN')
    ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED)
  UPDATE signing_operation o SET due_at = now() + make_interval(secs => $2::float8 / 1000)
  FROM due WHERE o.tenant_id = due.tenant_id AND o.operation_id = due.operation_id AND o.state IN ('PLANNED','UNKNOWN')
  RETURNING o.tenant_id, o.operation_id, o.event_no, o.dispatches, o.state`;

/** PLANNED and UNKNOWN rows whose time has come; each `due_at` moves `redispatchMs` ahead. */
export async function visitDueOperations(ledger: Ledger, limit: number, redispatchMs: number): Promise<DueJob[]> {
  const rows = await run<DueRow>(ledger.sql, visitStatement, [limit, redispatchMs]);
  return rows.map((row) => toJob(row, row.state === "PLANNED" ? "submit" : "reconcile"));
}

const visitInboxStatement = `WITH due AS (
    SELECT tenant_id, inbox_id, received_at FROM webhook_inbox WHERE due_at <= now()
    ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED)
  UPDATE webhook_inbox i SET due_at = now() + make_interval(secs => $2::float8 / 1000)
  FROM due WHERE i.tenant_id = due.tenant_id AND i.inbox_id = due.inbox_id AND i.received_at = due.received_at
    AND i.status IN ('RECEIVED','WAITING')
  RETURNING i.tenant_id, i.inbox_id AS operation_id, i.failures AS event_no, i.dispatches`;

/** RECEIVED and WAITING inbox rows whose time has come. */
export async function visitDueInbox(ledger: Ledger, limit: number, redispatchMs: number): Promise<DueJob[]> {
  const rows = await run<DueRow>(ledger.sql, visitInboxStatement, [limit, redispatchMs]);
  return rows.map((row) => ({ ...toJob(row, "webhook-apply"), kind: "inbox" }));
}

const visitWorkStatement = `WITH due AS (
    SELECT tenant_id, work_item_id FROM work_item WHERE run_after <= now() ORDER BY run_after LIMIT $1::int FOR UPDATE SKIP LOCKED)
  UPDATE work_item w SET run_after = GREATEST(now() + make_interval(secs => $2::float8 / 1000), w.lease_expires_at)
  FROM due WHERE w.tenant_id = due.tenant_id AND w.work_item_id = due.work_item_id
  RETURNING w.tenant_id, w.work_item_id AS operation_id, w.attempts AS event_no, w.dispatches`;

/** Work items whose time has come: audits, polls, probes and policies run on `reconcile`. */
export async function visitDueWork(ledger: Ledger, limit: number, redispatchMs: number): Promise<DueJob[]> {
  const rows = await run<DueRow>(ledger.sql, visitWorkStatement, [limit, redispatchMs]);
  return rows.map((row) => ({ ...toJob(row, "reconcile"), kind: "work" }));
}

const countDispatches = (table: string, id: string, counter: string) => `
  UPDATE ${table} t SET dispatches = t.dispatches + 1
  FROM jsonb_to_recordset($1::text::jsonb) AS x(tenant_id text, id uuid, event_no int, dispatches int)
  WHERE t.tenant_id = x.tenant_id AND t.${id} = x.id AND t.${counter} = x.event_no AND t.dispatches = x.dispatches
  RETURNING t.tenant_id, t.${id} AS operation_id, t.${counter} AS event_no, t.dispatches`;
const countOf: Record<string, string> = {
  operation: countDispatches("signing_operation", "operation_id", "event_no"),
  inbox: countDispatches("webhook_inbox", "inbox_id", "failures"),
  work: countDispatches("work_item", "work_item_id", "attempts"),
};

/**
 * The former jobs were seen gone, failed or finished: a new generation is handed over. Returns the jobs with their new
 * generation; a row that has moved on meanwhile is left out.
 */
export async function raiseGeneration(sql: AnySql, jobs: readonly DueJob[]): Promise<DueJob[]> {
  const raised: DueJob[] = [];
  for (const [kind, statement] of Object.entries(countOf)) {
    const some = jobs.filter((job) => job.kind === kind);
    if (some.length === 0) continue;
    const rows = await run<DueRow>(sql, statement, [
      JSON.stringify(
        some.map((job) => ({
          tenant_id: job.tenantId,
          id: job.subjectId,
          event_no: job.eventNo,
          dispatches: job.dispatches,
        })),
      ),
    ]);
    const queues = new Map(some.map((job) => [`${job.tenantId} ${job.subjectId}`, job.queue]));
    for (const row of rows) {
      const queue = queues.get(`${row.tenant_id} ${row.operation_id}`);
      if (queue !== undefined) raised.push({ ...toJob(row, queue), kind });
    }
  }
  return raised;
}

const makeDueStatement = (table: string, id: string, due = "due_at") => `
  UPDATE ${table} t SET ${due} = now() + make_interval(secs => $2::float8 / 1000)
  FROM jsonb_to_recordset($1::text::jsonb) AS x(tenant_id text, id uuid)
  WHERE t.tenant_id = x.tenant_id AND t.${id} = x.id AND t.${due} > now()`;
const makeDueOf: Record<string, string> = {
  operation: `${makeDueStatement("signing_operation", "operation_id")} AND t.state IN ('PLANNED','UNKNOWN')`,
  inbox: makeDueStatement("webhook_inbox", "inbox_id"),
  work: `${makeDueStatement("work_item", "work_item_id", "run_after")} AND t.lease_owner IS NULL`,
};

/** Visited, but their queue could not be reached: they are due again in `ms`, not only after a redispatch interval. */
export async function makeDueAgain(sql: AnySql, jobs: readonly DueJob[], ms: number): Promise<void> {
  for (const [kind, statement] of Object.entries(makeDueOf)) {
    const some = jobs.filter((job) => job.kind === kind);
    if (some.length === 0) continue;
    const rows = some.map((job) => ({ tenant_id: job.tenantId, id: job.subjectId }));
    await run(sql, statement, [JSON.stringify(rows), ms]);
  }
}

/**
 * A claim that found the connection paused or held, or the row's own time not come: nobody looks again before that.
 * Only while the row is still what the claim found.
 */
export async function postpone(
  ledger: Ledger,
  row: { tenantId: string; operationId: string; state: State; waitMs: number },
): Promise<void> {
  await ledger.sql`
    UPDATE signing_operation SET due_at = now() + make_interval(secs => ${row.waitMs}::float8 / 1000)
    WHERE tenant_id = ${row.tenantId} AND operation_id = ${row.operationId} AND state = ${row.state}
      AND state IN ('PLANNED','UNKNOWN') AND due_at IS NOT NULL`;
}

/** Opens (once) the ticket for a row that was handed over too often without moving (DESIGN §12.5). */
export async function reportPoisoned(ledger: Ledger, job: DueJob, dispatches: number): Promise<void> {
  await ledger.sql`
    INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, details, due_at)
    SELECT tenant_id, gen_random_uuid(), 'dead-letter', ${job.kind}, ${job.subjectId}, ticket_owners ->> 'dead-letter',
      'dispatched-without-progress', jsonb_build_object('dispatches', ${dispatches}::int, 'queue', ${job.queue}::text),
      now() + make_interval(mins => COALESCE((thresholds ->> 'dead-letter')::int, 60))
    FROM tenant WHERE tenant_id = ${job.tenantId}
    ON CONFLICT DO NOTHING`;
}
