import {
  type DueJob,
  type Ledger,
  makeDueAgain,
  openAgedTickets,
  raiseGeneration,
  reportPoisoned,
  type SweptJob,
  schedulePolls,
  sweepDeadWorkers,
  sweepExpiredLeases,
  visitDueInbox,
  visitDueOperations,
  visitDueWork,
} from "@countersign/ledger";
import { dispatch, jobsAlive, type Queues } from "@countersign/queue";
import type { Logger } from "@countersign/runtime";
import { toDispatch } from "./hand-over.js";

export interface DueLoopOptions {
  ledger: Ledger;
  queues: Queues;
  logger: Logger;
  /** Pause between passes, ms. */
  sweepMs: number;
  /** How far a visited row's next visit lies ahead, ms: insurance against a lost job. */
  redispatchMs: number;
  /**
   * Silence after which another worker counts as dead, ms; undefined: leases alone decide. `heardMs` says for how long
   * this process's own heartbeats have been getting through: after an outage of the database everybody looks dead.
   */
  dead?: { afterMs: number; heardMs(): number };
  /** How often requests that are not over are asked about, ms; undefined: never. */
  signingPollMs?: number;
  /** Rows per pass and kind. */
  batch?: number;
  /** Hand-overs without a transition after which a person is asked. */
  poisonedAfter?: number;
  onPass?: (result: DuePass) => void;
}

export interface DuePass {
  swept: number;
  handedOver: number;
  /** Their job is still there, so it was left alone. */
  alive: number;
  failed: number;
}

const defaults = { batch: 200, poisonedAfter: 30 };

/**
 * One visit of what is due (DESIGN §4): expired leases become UNKNOWN, the rest is handed to its queue unless its job is
 * still there. Safe to run in any number of processes at once.
 */
export async function visitDue(options: DueLoopOptions): Promise<DuePass> {
  const { ledger, queues, redispatchMs } = options;
  const batch = options.batch ?? defaults.batch;
  const swept = await sweepExpiredLeases(ledger, batch, redispatchMs);
  const { dead } = options;
  if (dead !== undefined && dead.heardMs() > dead.afterMs) {
    swept.push(...(await sweepDeadWorkers(ledger, batch, redispatchMs, dead.afterMs)));
  }
  for (const row of swept) reportSwept(options.logger, row);
  if (options.signingPollMs !== undefined) await schedulePolls(ledger, batch, options.signingPollMs);
  const due = [
    ...(await visitDueOperations(ledger, batch, redispatchMs)),
    ...(await visitDueInbox(ledger, batch, redispatchMs)),
    ...(await visitDueWork(ledger, batch, redispatchMs)),
  ];
  const pass = { swept: swept.length, handedOver: 0, alive: 0, failed: 0 };
  if (swept.length + due.length === 0) return pass;
  try {
    const alive = due.length === 0 ? [] : await jobsAlive(queues, due.map(toDispatch));
    const lost = due.filter((_, index) => alive[index] !== true);
    pass.alive = due.length - lost.length;
    const jobs = [...swept, ...(await raiseGeneration(ledger.sql, lost))];
    const { added, failed } = await dispatch(queues, jobs.map(toDispatch));
    pass.handedOver = added;
    pass.failed = failed;
    if (failed > 0) await makeDueAgain(ledger.sql, jobs, options.sweepMs);
    await reportTheStuck(options, jobs);
  } catch (error) {
    options.logger.warn({ err: error, count: due.length }, "queue out of reach: rows stay due");
    pass.failed = due.length + swept.length;
    await makeDueAgain(ledger.sql, [...swept, ...due], options.sweepMs);
  }
  return pass;
}

function reportSwept(logger: Logger, { tenantId, subjectId, attemptNo, from, reason }: SweptJob): void {
  logger.info({ tenant: tenantId, operation: subjectId, attempt: attemptNo, from, state: "UNKNOWN", reason }, "swept");
}

async function reportTheStuck(options: DueLoopOptions, jobs: readonly DueJob[]): Promise<void> {
  const limit = options.poisonedAfter ?? defaults.poisonedAfter;
  for (const job of jobs) {
    if (job.dispatches < limit) continue;
    options.logger.error(
      { tenant: job.tenantId, operation: job.subjectId, queue: job.queue, count: job.dispatches },
      "handed over again and again without progress",
    );
    await reportPoisoned(options.ledger, job, job.dispatches);
  }
}

/** How often ages are looked at, ms: their thresholds are minutes. */
const agesEveryMs = 15_000;

export interface DueLoop {
  /** Time since a pass last ended well, ms. */
  idleMs(): number;
  /** Ends after the running pass. */
  stop(): Promise<void>;
}

/** Runs {@link visitDue} until stopped; a failing pass is logged once per fault and tried again. */
export function startDueLoop(options: DueLoopOptions): DueLoop {
  let stopped = false;
  let lastGood = performance.now();
  let agesAt = performance.now() + Math.random() * agesEveryMs;
  let failing = false;
  let wake: (() => void) | undefined;
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, options.sweepMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const loop = async (): Promise<void> => {
    while (!stopped) {
      let full = false;
      try {
        const pass = await visitDue(options);
        options.onPass?.(pass);
        if (performance.now() >= agesAt) {
          agesAt = performance.now() + agesEveryMs;
          await openAgedTickets(options.ledger);
        }
        full = pass.handedOver >= (options.batch ?? defaults.batch);
        lastGood = performance.now();
        failing = false;
      } catch (error) {
        if (!failing) options.logger.error({ err: error }, "due loop failed: tried again every pass");
        failing = true;
      }
      // A full batch means that more is due: go on at once.
      if (!stopped && !full) await pause();
    }
  };
  const ended = loop();
  return {
    idleMs: () => performance.now() - lastGood,
    stop: async () => {
      stopped = true;
      wake?.();
      await ended;
    },
  };
}
