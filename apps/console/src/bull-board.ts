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
const allowed = [
  /^PUT \/queues\/api\/queues\/[^/]+\/[^/]+\/(retry|promote)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(pause|resume|promote)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/retry\/(failed|completed)$/,
];

/** Whether the board's own request may pass, for somebody who may act. */
export const boardAllows = (method: string, path: string): boolean =>
  allowed.some((pattern) => pattern.test(`${method} ${path}`));

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
