import { type Queues, queueNames } from "@countersign/queue";
import type { Overview } from "./contract.js";

const patienceMs = 1_000;

/** How many jobs stand where; null where the queues' store does not answer in a second. */
export async function queueDepths(queues: Queues): Promise<Overview["queues"]> {
  const timer = new AbortController();
  const late = new Promise<null>((resolve) => {
    const timeout = setTimeout(() => resolve(null), patienceMs);
    timer.signal.addEventListener("abort", () => clearTimeout(timeout));
  });
  const look = Promise.all(
    queueNames.map(async (name) => {
      const queue = queues.queue(name);
      const [counts, paused] = await Promise.all([
        queue.getJobCounts("waiting", "active", "delayed", "failed"),
        queue.isPaused(),
      ]);
      const { waiting = 0, active = 0, delayed = 0, failed = 0 } = counts;
      return { name, waiting, active, delayed, failed, paused };
    }),
  ).catch((error: unknown) => {
    queues.report(error);
    return null;
  });
  try {
    return await Promise.race([look, late]);
  } finally {
    timer.abort();
  }
}
