import type { Queues } from "./connection.js";
import { QueueUnavailableError } from "./errors.js";
import { isReady } from "./redis-policy.js";

/** Refuses at once while Redis is away: BullMQ would wait for the connection with the work in hand; many such waits leak. */
export function requireStore({ store }: Queues): void {
  if (store.kind === "redis" && !isReady(store.client)) {
    throw new QueueUnavailableError("redis-unreachable", "Redis is not connected");
  }
}
