import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { type JobQueue, type Queues, queueNames } from "@countersign/queue";
import type { FastifyPluginCallback } from "fastify";

export const boardPath = "/queues";

/**
 * What may be done to a job or a queue through Bull Board: whatever else its pages offer (adding, editing, emptying,
 * obliterating) is refused. A retried or promoted job only asks for a row, which passes the claim like every other.
 */
const allowed = new Set([
  "/:queueName/:jobId/retry",
  "/:queueName/:jobId/promote",
  "/:queueName/pause",
  "/:queueName/resume",
  "/:queueName/promote",
  "/:queueName/retry/:queueStatus",
]);
const retried = new Set<unknown>([undefined, "failed", "completed"]);

/** Whether the board's own request may pass, for somebody who may act. @param route the pattern that was matched */
export const boardAllows = (method: string, route: string, queueStatus: string | undefined): boolean =>
  method === "PUT" && allowed.has(route.replace(`${boardPath}/api/queues`, "")) && retried.has(queueStatus);

/** Bull Board over the four queues. */
export function bullBoard(queues: Queues): FastifyPluginCallback<{ prefix: string }> {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(boardPath);
  createBullBoard({
    queues: queueNames.map((name) => adapterOf(queues.queue(name))),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: "Countersign queues" } },
  });
  return adapter.registerPlugin();
}

/** Bull Board's types know queues on Redis only, while its code works on either store (the tests run both). */
function adapterOf(queue: JobQueue): BullMQAdapter {
  const adapter: unknown = Reflect.construct(BullMQAdapter, [queue, { allowRetries: true }]);
  if (!(adapter instanceof BullMQAdapter)) throw new TypeError("a constructor makes what it is named for");
  return adapter;
}
