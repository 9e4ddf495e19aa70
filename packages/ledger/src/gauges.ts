import { type AnySql, type Ledger, run } from "./database.js";
import { holdInForce } from "./hold-in-force.js";
import { finalStates, type State } from "./state.js";
import { talliedMoves } from "./tally.js";
import type { TicketKind } from "./tickets.js";

/**
 * What an operator's graphs and alarms are made of: counts and ages of what is open, over all tenants. Everything here
 * reads partial indexes of open rows, or tables that hold a row per connection or process; nothing scans a table that
 * grows with the history (a test reads the plans). Ages are seconds by the database's clock.
 */

/** Rows of one kind that a reading looks at, those due first. Counts stop there, so that a reading stays cheap in a flood. */
export const gaugeRowLimit = 50_000;

/** What may be ready and wait to be taken up: the queue's own name, or `follow-up` for work items. */
export type ReadyWork = "submit" | "reconcile" | "webhook-apply" | "follow-up";

/** One reading. A list has no entry for what is not there; an age is undefined where there is nothing that could be old. */
export interface LedgerGauges {
  /** Operations that are due or leased, and those in NEEDS_REVIEW. */
  operations: { state: State; action: string; count: number }[];
  /** PLANNED operations that wait for another operation. */
  waiting: number;
  /** Since the first attempt of the oldest operation that is UNKNOWN, or being looked at. */
  unknownOldest: number | undefined;
  /** Since the ticket of the oldest review was opened. */
  reviewOldest: number | undefined;
  /** For how long the oldest of what nothing keeps back (pause, hold, back-off, dependency) has been ready. */
  readyOldest: { work: ReadyWork; seconds: number }[];
  /** How far the earliest `due_at` lies in the past. The due loop moves it ahead, so a large lag means that none runs. */
  dueLag: { kind: "operation" | "inbox" | "work"; seconds: number }[];
  /** Events that are not settled, with the age of the oldest since it came in. */
  inbox: { status: string; count: number; seconds: number }[];
  /** Open tickets; `overdueSeconds` of the one most past its due time, 0 where none is. */
  tickets: { kind: TicketKind; count: number; overdueSeconds: number }[];
  connections: {
    /** Paused until a person resumes them. */
    pausedByPerson: number;
    /** Paused until a moment that the provider named. */
    pausedForTime: number;
    providerDown: number;
    /** Since the circuit that has been open longest opened. */
    providerDownOldest: number | undefined;
  };
  /** Holds in force. */
  holds: number;
  /** Processes that say that they live, by kind, and seconds since the last of the kind said so. */
  processes: { kind: string; alive: number; silentSeconds: number }[];
  /** Operations that have ended, from the tallies; undefined where nobody keeps them. */
  ended: { state: State; action: string; count: number }[] | undefined;
}

/** Seconds since then, 0 for what lies ahead; null stays null (GREATEST alone would make it 0). */
const age = (moment: string): string =>
  `CASE WHEN ${moment} IS NOT NULL THEN GREATEST(EXTRACT(EPOCH FROM now() - ${moment}), 0)::float8 END`;
const finals = finalStates.map((state) => `'${state}'`).join(", ");

/**
 * By connection first, since a pause, a circuit and a hold are the connection's. `ready_at`: since the last move, or since
 * its own earliest time. The order by `due_at` makes the partial index of due rows the only way.
 */
const operationsStatement = `WITH live AS MATERIALIZED (
    SELECT tenant_id, connection_id, action, state, first_attempt_at, GREATEST(updated_at, not_before) AS ready_at
    FROM signing_operation WHERE due_at IS NOT NULL ORDER BY due_at LIMIT ${gaugeRowLimit}),
  o AS (
    SELECT tenant_id, connection_id, action, state, count(*) AS count, min(first_attempt_at) AS attempted_at, min(ready_at) AS ready_at
    FROM live GROUP BY tenant_id, connection_id, action, state)
  SELECT o.state, o.action, sum(o.count)::float8 AS count,
    ${age("min(o.attempted_at)")} AS attempted,
    ${age(`min(GREATEST(o.ready_at, c.paused_until)) FILTER (WHERE o.ready_at <= now() AND c.circuit_opened_at IS NULL
      AND (c.paused_until IS NULL OR c.paused_until <= now()) AND NOT (o.state = 'PLANNED' AND ${holdInForce}))`)} AS ready
  FROM o JOIN provider_connection c ON c.tenant_id = o.tenant_id AND c.connection_id = o.connection_id
  GROUP BY o.state, o.action`;

/** Rows in review are not due: each connection and action is one short range of the index of filters. */
const reviewsStatement = `SELECT a.action, sum(r.count)::float8 AS count
  FROM provider_connection c CROSS JOIN (VALUES ('SEND'), ('VOID'), ('RESEND'), ('FINALIZE')) AS a(action)
  CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM (
      SELECT 1 FROM signing_operation o
      WHERE o.tenant_id = c.tenant_id AND o.connection_id = c.connection_id AND o.action = a.action AND o.state = 'NEEDS_REVIEW'
      LIMIT ${gaugeRowLimit}) few) r
  GROUP BY a.action HAVING sum(r.count) > 0`;

const waitingStatement = `SELECT count(*)::float8 AS count FROM (
    SELECT tenant_id, operation_id FROM operation_dependency WHERE resolved_at IS NULL GROUP BY tenant_id, operation_id LIMIT ${gaugeRowLimit}) w`;

const inboxStatement = `WITH live AS MATERIALIZED (
    SELECT status, received_at FROM webhook_inbox WHERE due_at IS NOT NULL ORDER BY due_at LIMIT ${gaugeRowLimit})
  SELECT status, count(*)::float8 AS count, ${age("min(received_at)")} AS seconds FROM live GROUP BY status
  UNION ALL
  SELECT status, count(*)::float8, ${age("min(received_at)")} FROM (
    SELECT status, received_at FROM webhook_inbox WHERE status IN ('QUARANTINED','DEAD','CONFLICT')
    ORDER BY tenant_id, inbox_id LIMIT ${gaugeRowLimit}) open GROUP BY status`;

const workStatement = `SELECT ${age("min(GREATEST(created_at, not_before))")} AS seconds FROM (
    SELECT created_at, not_before, lease_owner FROM work_item ORDER BY run_after LIMIT ${gaugeRowLimit}) w
  WHERE lease_owner IS NULL AND (not_before IS NULL OR not_before <= now())`;

const lagStatement = `SELECT
    ${age("(SELECT min(due_at) FROM signing_operation WHERE due_at IS NOT NULL)")} AS operation,
    ${age("(SELECT min(due_at) FROM webhook_inbox WHERE due_at IS NOT NULL)")} AS inbox,
    ${age("(SELECT min(run_after) FROM work_item)")} AS work`;

const ticketsStatement = `SELECT kind, count(*)::float8 AS count, ${age("min(due_at)")} AS overdue, ${age("min(opened_at)")} AS open
  FROM ticket WHERE resolved_at IS NULL GROUP BY kind`;

const connectionsStatement = `SELECT
    count(*) FILTER (WHERE paused_until = 'infinity')::float8 AS "pausedByPerson",
    count(*) FILTER (WHERE paused_until > now() AND paused_until < 'infinity')::float8 AS "pausedForTime",
    count(*) FILTER (WHERE circuit_opened_at IS NOT NULL)::float8 AS "providerDown",
    ${age("min(circuit_opened_at)")} AS "providerDownOldest"
  FROM provider_connection`;

const holdsStatement = `SELECT count(*)::float8 AS count FROM hold WHERE released_at IS NULL AND (ends_at IS NULL OR ends_at > now())`;

/** Several times the longest heartbeat interval that a default setting makes. */
const aliveSeconds = 15;

const processesStatement = `SELECT kind,
    count(*) FILTER (WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '${aliveSeconds} seconds')::float8 AS alive,
    ${age("max(heartbeat_at)")} AS "silentSeconds"
  FROM worker_process GROUP BY kind`;

const endedStatement = `SELECT to_state AS state, action, sum(count)::float8 AS count
  FROM (${talliedMoves}) moves WHERE to_state IN (${finals}) GROUP BY to_state, action`;

/** Every statement of a reading, for the test that looks at their plans. */
export const gaugeStatements = {
  operations: operationsStatement,
  reviews: reviewsStatement,
  waiting: waitingStatement,
  inbox: inboxStatement,
  work: workStatement,
  lag: lagStatement,
  tickets: ticketsStatement,
  connections: connectionsStatement,
  holds: holdsStatement,
  processes: processesStatement,
  ended: endedStatement,
} as const;

/** Longest time of one statement of a reading, ms: a database that is busy has better things to do. */
const statementTimeoutMs = 3_000;

interface OperationsRow {
  state: State;
  action: string;
  count: number;
  attempted: number | null;
  ready: number | null;
}

/**
 * One reading of the ledger, all tenants together, on one connection. Costs a few milliseconds with thousands of open
 * rows; call it no more often than graphs need it. Throws what the database throws, also where a statement takes longer
 * than three seconds.
 */
export async function readGauges(ledger: Ledger): Promise<LedgerGauges> {
  return await ledger.sql.begin("READ ONLY", async (sql) => {
    await sql.unsafe(`SET LOCAL statement_timeout = ${statementTimeoutMs}`);
    const operations = await run<OperationsRow>(sql, operationsStatement, []);
    const reviews = await run<{ action: string; count: number }>(sql, reviewsStatement, []);
    const inbox = await run<{ status: string; count: number; seconds: number }>(sql, inboxStatement, []);
    const tickets = await readTickets(sql);
    return {
      operations: [
        ...operations.map(({ state, action, count }) => ({ state, action, count })),
        ...reviews.map(({ action, count }) => ({ state: "NEEDS_REVIEW" as const, action, count })),
      ],
      waiting: (await one<{ count: number }>(sql, waitingStatement)).count,
      unknownOldest: largest(operations.filter(({ state }) => isUnknown(state)).map(({ attempted }) => attempted)),
      reviewOldest: largest(tickets.filter(({ kind }) => kind === "needs-review").map(({ open }) => open)),
      readyOldest: await readyOldest(sql, operations, inbox),
      dueLag: await dueLag(sql),
      inbox: inbox.map(({ status, count, seconds }) => ({ status, count, seconds })),
      tickets: tickets.map(({ kind, count, overdue }) => ({ kind, count, overdueSeconds: overdue })),
      connections: await readConnections(sql),
      holds: (await one<{ count: number }>(sql, holdsStatement)).count,
      processes: [...(await run<LedgerGauges["processes"][number]>(sql, processesStatement, []))],
      ended: await readEnded(sql),
    };
  });
}

/** A look changes nothing about not knowing: RECONCILING counts as UNKNOWN, or the age would come and go with each look. */
const isUnknown = (state: State): boolean => state === "UNKNOWN" || state === "RECONCILING";

async function one<Row extends object>(sql: AnySql, statement: string): Promise<Row> {
  const [row] = await run<Row>(sql, statement, []);
  if (row === undefined) throw new Error("an aggregate without groups answers with one row");
  return row;
}

function largest(values: readonly (number | null)[]): number | undefined {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? undefined : Math.max(...known);
}

async function readyOldest(
  sql: AnySql,
  operations: readonly OperationsRow[],
  inbox: readonly { status: string; seconds: number }[],
): Promise<LedgerGauges["readyOldest"]> {
  const of = (state: State) => largest(operations.filter((row) => row.state === state).map(({ ready }) => ready));
  const followUp = await one<{ seconds: number | null }>(sql, workStatement);
  const found: readonly { work: ReadyWork; seconds: number | undefined }[] = [
    { work: "submit", seconds: of("PLANNED") },
    { work: "reconcile", seconds: of("UNKNOWN") },
    { work: "webhook-apply", seconds: inbox.find(({ status }) => status === "RECEIVED")?.seconds },
    { work: "follow-up", seconds: followUp.seconds ?? undefined },
  ];
  return found.map(({ work, seconds }) => ({ work, seconds: seconds ?? 0 }));
}

async function dueLag(sql: AnySql): Promise<LedgerGauges["dueLag"]> {
  const lag = await one<{ operation: number | null; inbox: number | null; work: number | null }>(sql, lagStatement);
  return [
    { kind: "operation", seconds: lag.operation ?? 0 },
    { kind: "inbox", seconds: lag.inbox ?? 0 },
    { kind: "work", seconds: lag.work ?? 0 },
  ];
}

const readTickets = (sql: AnySql) =>
  run<{ kind: TicketKind; count: number; overdue: number; open: number }>(sql, ticketsStatement, []);

async function readConnections(sql: AnySql): Promise<LedgerGauges["connections"]> {
  const { providerDownOldest, ...counts } = await one<
    Omit<LedgerGauges["connections"], "providerDownOldest"> & { providerDownOldest: number | null }
  >(sql, connectionsStatement);
  return { ...counts, providerDownOldest: providerDownOldest ?? undefined };
}

async function readEnded(sql: AnySql): Promise<LedgerGauges["ended"]> {
  const { kept } = await one<{ kept: boolean }>(sql, "SELECT EXISTS (SELECT 1 FROM tally_mark) AS kept");
  if (!kept) return undefined;
  return [...(await run<{ state: State; action: string; count: number }>(sql, endedStatement, []))];
}
