import type { DueJob } from "@countersign/ledger";
import { type Dispatch, type DispatchResult, dispatch, type Queues } from "@countersign/queue";

/** Hand-overs per line of history that a generation can tell apart. */
const handOversPerEvent = 1_000;

/**
 * A job of the ledger as a job of a queue. The generation grows with every transition and with every hand-over of the
 * same one, so that a finished or kept job never stands in the way of its successor.
 */
export function toDispatch(job: DueJob): Dispatch {
  const { queue, tenantId, kind, subjectId } = job;
  const generation = job.eventNo * handOversPerEvent + Math.min(job.dispatches, handOversPerEvent - 1);
  return { queue, tenantId, kind, subjectId, generation };
}

/**
 * Whoever commits a due row hands its job over after the commit (DESIGN §4 "Hot path"). Best effort and never throws: the
 * row is due, so the due loop finds whatever is lost here.
 */
export const handOver = (queues: Queues, jobs: readonly DueJob[]): Promise<DispatchResult> =>
  dispatch(queues, jobs.map(toDispatch));
