import { type Queues, queueStandings } from "@countersign/queue";
import type { Overview } from "./contract.js";

/** How many jobs stand where; null where the queues' store does not answer in time. */
export async function queueDepths(queues: Queues): Promise<Overview["queues"]> {
  try {
    return (await queueStandings(queues)).map(({ queue, paused, jobs }) => ({ name: queue, paused, ...jobs }));
  } catch (error) {
    queues.report(error);
    return null;
  }
}
