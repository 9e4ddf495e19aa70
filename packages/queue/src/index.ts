export { type JobQueue, jobOptions, openQueues, type QueueSettings, type Queues, redisPrefix } from "./connection.js";
export { type DepthState, type QueueDepth, queueDepths } from "./depths.js";
export { type DispatchResult, dispatch, jobsAlive } from "./dispatcher.js";
export { InvalidJobError, QueueError, QueueSetupError, QueueUnavailableError } from "./errors.js";
export { migrateQueues, queueSchema } from "./postgres-pool.js";
export { pauseQueue, type QueueStanding, queueStandings, resumeQueue } from "./queue-standing.js";
export { type Dispatch, type JobData, jobData, jobId, type QueueName, queueNames } from "./queues.js";
export { type RedisFacts, readRedisFacts } from "./redis-facts.js";
export { checkRedisPolicy, type RedisPolicy } from "./redis-policy.js";
export {
  createWorker,
  type JobContext,
  type JobHandler,
  type QueueWorker,
  type WorkerSettings,
} from "./worker.js";
