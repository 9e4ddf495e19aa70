import { openQueues, type Queues, QueueUnavailableError } from "@countersign/queue";
import { commonConfig, createLogger, loadConfig } from "@countersign/runtime";
import type { CliIo } from "./io.js";

/** What a command needs to work on the queues. */
const shape = {
  DATABASE_URL: commonConfig.DATABASE_URL,
  REDIS_URL: commonConfig.REDIS_URL,
  QUEUE_DATABASE_URL: commonConfig.QUEUE_DATABASE_URL,
} as const;

const readyMs = 3_000;

/** Opens the queues for one piece of work and closes them after. */
export async function withQueues<Value>(io: CliIo, work: (queues: Queues) => Promise<Value>): Promise<Value> {
  const config = loadConfig(shape, io.env, { name: "countersign" });
  const queues = openQueues({
    databaseUrl: config.DATABASE_URL,
    redisUrl: config.REDIS_URL,
    queueDatabaseUrl: config.QUEUE_DATABASE_URL,
    // What goes wrong is said once, by the error that ends the command.
    logger: createLogger({ name: "countersign", destination: { write: () => undefined } }),
  });
  try {
    if (!(await queues.ready(readyMs))) await explainAbsence(queues);
    return await work(queues);
  } finally {
    await queues.close();
  }
}

/** Throws what is the matter with a store that is not ready. */
async function explainAbsence(queues: Queues): Promise<never> {
  if (queues.kind === "postgres") await queues.check.run(AbortSignal.timeout(readyMs));
  throw new QueueUnavailableError("queue-unreachable", "the queue's store did not answer in time");
}
