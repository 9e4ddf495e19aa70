import type { JobQueue, Queues } from "./connection.js";
import { type QueueName, queueNames } from "./queues.js";
import { producerTimeoutMs } from "./redis-clients.js";
import { requireStore } from "./require-store.js";
import { within } from "./timeout.js";

/** Where a job of ours can be. `failed` ones are kept for a while, for inspection. */
export const depthStates = ["waiting", "active", "delayed", "failed"] as const;
export type DepthState = (typeof depthStates)[number];

export interface QueueDepth {
  readonly queue: QueueName;
  readonly state: DepthState;
  readonly count: number;
}

/**
 * How many jobs each queue holds, by state. For graphs only: jobs are nudges, and what is still to be done stands in the
 * ledger.
 * @throws QueueUnavailableError when the store does not answer in time
 */
export async function queueDepths(queues: Queues, timeoutMs: number = producerTimeoutMs): Promise<QueueDepth[]> {
  requireStore(queues);
  const counted = queueNames.map(async (queue) => {
    const counts = await countJobs(queues.queue(queue));
    return depthStates.map((state) => ({ queue, state, count: counts[state] }));
  });
  return (await within(timeoutMs, Promise.all(counted))).flat();
}

/** Jobs of one queue by where they are. Those of a paused queue wait: the store on PostgreSQL would leave them out. */
export async function countJobs(queue: JobQueue): Promise<Record<DepthState, number>> {
  // Jobs of ours have no priority, which is priority 0, paused or not.
  const [counts, byPriority] = await Promise.all([
    queue.getJobCounts("active", "delayed", "failed"),
    queue.getCountsPerPriority([0]),
  ]);
  return {
    waiting: byPriority["0"] ?? 0,
    active: counts.active ?? 0,
    delayed: counts.delayed ?? 0,
    failed: counts.failed ?? 0,
  };
}
