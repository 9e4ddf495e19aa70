import type { JobQueue, Queues } from "./connection.js";
import { countJobs, type DepthState } from "./depths.js";
import { type QueueName, queueNames } from "./queues.js";
import { producerTimeoutMs } from "./redis-clients.js";
import { requireStore } from "./require-store.js";
import { within } from "./timeout.js";

/** How one queue stands. */
export interface QueueStanding {
  readonly queue: QueueName;
  /** Workers take nothing from it. */
  readonly paused: boolean;
  /** Jobs by where they are; those of a paused queue are `waiting`. */
  readonly jobs: Readonly<Record<DepthState, number>>;
  /** Since the job that has waited longest was added; undefined where none waits. */
  readonly oldestWaitingMs: number | undefined;
}

/**
 * Every queue with its depth, its pause and the age of its oldest waiting job.
 * @throws QueueUnavailableError when the store does not answer in time
 */
export async function queueStandings(queues: Queues, timeoutMs: number = producerTimeoutMs): Promise<QueueStanding[]> {
  requireStore(queues);
  return await within(timeoutMs, Promise.all(queueNames.map((name) => standing(name, queues.queue(name)))));
}

async function standing(name: QueueName, queue: JobQueue): Promise<QueueStanding> {
  const [jobs, paused, [oldest]] = await Promise.all([
    countJobs(queue),
    queue.isPaused(),
    queue.getJobs(["waiting"], 0, 0, true),
  ]);
  return {
    queue: name,
    paused,
    jobs,
    // The store keeps the moment by the clock of who added the job.
    oldestWaitingMs: oldest === undefined ? undefined : Math.max(0, Date.now() - oldest.timestamp),
  };
}

/**
 * Lets no worker take anything more from a queue; jobs under way end, new ones are still added. It lasts until
 * `resumeQueue`, or until the store loses it (an emptied Redis forgets it): a hold in the ledger is what stops sending.
 * @throws QueueUnavailableError when the store does not answer in time
 */
export async function pauseQueue(queues: Queues, name: QueueName, timeoutMs = producerTimeoutMs): Promise<void> {
  requireStore(queues);
  await within(timeoutMs, queues.queue(name).pause());
}

/**
 * Ends a queue's pause.
 * @throws QueueUnavailableError when the store does not answer in time
 */
export async function resumeQueue(queues: Queues, name: QueueName, timeoutMs = producerTimeoutMs): Promise<void> {
  requireStore(queues);
  await within(timeoutMs, queues.queue(name).resume());
}
