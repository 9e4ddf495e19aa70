import { type Ledger, type LedgerGauges, readGauges, ticketKinds } from "@countersign/ledger";
import { type Queues, queueDepths } from "@countersign/queue";
import type { Logger, MetricOptions, Metrics } from "@countersign/runtime";
import { Kept } from "./kept.js";

export interface LedgerGaugesOptions {
  readonly ledger: Ledger;
  readonly queues: Queues;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** A reading answers every scrape for so long, ms. */
  readonly keepMs?: number;
  /** Longest that a scrape waits for a reading, ms; shorter than a scrape's own limit. */
  readonly waitMs?: number;
}

const defaults = { keepMs: 10_000, waitMs: 4_000 };

/**
 * Adds the ledger's gauges to a process's `/metrics`. They are read when somebody scrapes, at most once per `keepMs`, by
 * whichever process serves them: all say the same, so rules take the `max`. Where the database can't be read in time
 * they are left out, and `countersign_ledger_read_ok` is 0: no old number passes for a fresh one. A scrape never fails.
 */
export function serveLedgerGauges(options: LedgerGaugesOptions): void {
  const { ledger, queues, metrics, logger, keepMs = defaults.keepMs, waitMs = defaults.waitMs } = options;
  const kept = (tell: (error: unknown) => void) => ({ keepMs, waitMs, onResult: saidOnce(tell) });
  const readings = new Kept(
    () => readGauges(ledger),
    kept((error) => logger.warn({ err: error }, "ledger gauges not read")),
  );
  const depths = new Kept(
    () => queueDepths(queues),
    kept((error) => logger.warn({ err: error }, "queue depths not read")),
  );

  const ok = metrics.gauge({
    name: "countersign_ledger_read_ok",
    help: "1 where the ledger's gauges could be read for this scrape; 0 where they are left out",
    collect: async (): Promise<void> => {
      ok.set((await readings.get()) === undefined ? 0 : 1);
    },
  });
  const add = adderOf(metrics, readings);
  addOperations(add);
  addPeoplesWork(add);
  addSurroundings(add);
  const jobs = metrics.gauge({
    name: "countersign_queue_jobs",
    help: "Jobs in the queues, by state; jobs are nudges, the work itself stands in the ledger",
    labels: ["queue", "state"],
    collect: async () => {
      const counted = (await depths.get()) ?? [];
      jobs.reset();
      for (const { queue, state, count } of counted) jobs.set({ queue, state }, count);
    },
  });
}

/** A fault that lasts is one line, not one per scrape. */
function saidOnce(tell: (error: unknown) => void): (error: unknown) => void {
  let failing = false;
  return (error) => {
    if (error !== undefined && !failing) tell(error);
    failing = error !== undefined;
  };
}

type Labels<Label extends string> = { [Name in Label]: string };

interface AddGauge {
  gauge<Label extends string = never>(
    options: MetricOptions<Label>,
    read: (gauges: LedgerGauges) => readonly (readonly [Labels<Label>, number])[],
  ): void;
}

function adderOf(metrics: Metrics, readings: Kept<LedgerGauges>): AddGauge {
  return {
    gauge: (options, read) => {
      const gauge = metrics.gauge({
        ...options,
        collect: async () => {
          const gauges = await readings.get();
          gauge.reset();
          // A gauge without labels is reset to 0, which would say that nothing is old.
          if ((options.labels ?? []).length === 0) gauge.remove();
          if (gauges === undefined) return;
          for (const [labels, value] of read(gauges)) gauge.set(labels, value);
        },
      });
    },
  };
}

function addOperations(add: AddGauge): void {
  add.gauge(
    {
      name: "countersign_operations",
      help: "Operations that are not over, by state; those that wait for another one are counted apart",
      labels: ["state", "action"],
    },
    ({ operations }) => operations.map(({ state, action, count }) => [{ state, action }, count]),
  );
  add.gauge(
    { name: "countersign_operations_waiting", help: "PLANNED operations that wait for another operation" },
    ({ waiting }) => [[{}, waiting]],
  );
  add.gauge(
    {
      name: "countersign_operations_ended",
      help: "Operations that have ended since the beginning, by state; left out where nobody keeps the tallies",
      labels: ["state", "action"],
    },
    ({ ended = [] }) => ended.map(({ state, action, count }) => [{ state, action }, count]),
  );
  add.gauge(
    {
      name: "countersign_unknown_oldest_seconds",
      help: "Since the first attempt of the oldest operation whose outcome nobody knows; 0 where there is none",
    },
    ({ unknownOldest = 0 }) => [[{}, unknownOldest]],
  );
  add.gauge(
    {
      name: "countersign_ready_oldest_seconds",
      help: "For how long the oldest of what nothing keeps back has been ready and was not taken up",
      labels: ["work"],
    },
    ({ readyOldest }) => readyOldest.map(({ work, seconds }) => [{ work }, seconds]),
  );
  add.gauge(
    {
      name: "countersign_due_lag_seconds",
      help: "How long the earliest due row has been due without a visit of the due loop",
      labels: ["kind"],
    },
    ({ dueLag }) => dueLag.map(({ kind, seconds }) => [{ kind }, seconds]),
  );
}

function addPeoplesWork(add: AddGauge): void {
  add.gauge(
    {
      name: "countersign_review_oldest_seconds",
      help: "Since the oldest open review began; 0 where there is none",
    },
    ({ reviewOldest = 0 }) => [[{}, reviewOldest]],
  );
  add.gauge({ name: "countersign_tickets_open", help: "Open tickets, by kind", labels: ["kind"] }, ({ tickets }) =>
    ticketKinds.map((kind) => [{ kind }, tickets.find((each) => each.kind === kind)?.count ?? 0]),
  );
  add.gauge(
    {
      name: "countersign_tickets_overdue_seconds",
      help: "How far the open ticket of the kind that is most past its due time is past it; 0 where none is",
      labels: ["kind"],
    },
    ({ tickets }) =>
      ticketKinds.map((kind) => [{ kind }, tickets.find((each) => each.kind === kind)?.overdueSeconds ?? 0]),
  );
  add.gauge(
    { name: "countersign_inbox_events", help: "Webhook events that are not settled, by status", labels: ["status"] },
    ({ inbox }) => inbox.map(({ status, count }) => [{ status }, count]),
  );
  add.gauge(
    {
      name: "countersign_inbox_oldest_seconds",
      help: "Since the oldest event of the status came in",
      labels: ["status"],
    },
    ({ inbox }) => inbox.map(({ status, seconds }) => [{ status }, seconds]),
  );
}

function addSurroundings(add: AddGauge): void {
  add.gauge(
    {
      name: "countersign_connections_held_up",
      help: "Connections that nothing is sent on: paused until a person resumes, paused for a time, provider down",
      labels: ["why"],
    },
    ({ connections }) => [
      [{ why: "paused" }, connections.pausedByPerson],
      [{ why: "paused-for-time" }, connections.pausedForTime],
      [{ why: "provider-down" }, connections.providerDown],
    ],
  );
  add.gauge(
    {
      name: "countersign_provider_down_oldest_seconds",
      help: "Since the provider of the connection that has been down longest was found down; 0 where none is",
    },
    ({ connections: { providerDownOldest = 0 } }) => [[{}, providerDownOldest]],
  );
  add.gauge({ name: "countersign_holds", help: "Holds in force" }, ({ holds }) => [[{}, holds]]);
  add.gauge(
    {
      name: "countersign_processes",
      help: "Processes whose heartbeat came within the last 15 seconds, by kind",
      labels: ["kind"],
    },
    ({ processes }) => processes.map(({ kind, alive }) => [{ kind }, alive]),
  );
  add.gauge(
    {
      name: "countersign_heartbeat_age_seconds",
      help: "Since the last heartbeat of any process of the kind",
      labels: ["kind"],
    },
    ({ processes }) => processes.map(({ kind, silentSeconds }) => [{ kind }, silentSeconds]),
  );
}
