import { QueueUnavailableError } from "./errors.js";

/**
 * The promise's result, or QueueUnavailableError after `ms`. The promise itself goes on; its late failure is ignored.
 * @param onTimeout told when the time is up
 */
export async function within<T>(ms: number, promise: Promise<T>, onTimeout?: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      onTimeout?.();
      reject(new QueueUnavailableError("queue-timeout", "the queue's store did not answer in time"));
    }, ms);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}
