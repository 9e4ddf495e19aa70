/** As the client at the end of the provider's own contract: at most five tries. */
export const maxTries = 5;

const seconds = 1_000;
const afterNetworkErrorMs = 5 * seconds;

/** What a status asks for: the wait in ms before the same request is made again, or undefined to take the answer. */
export function waitBeforeRetry(
  status: number,
  code: string | undefined,
  retryAfter: string | null,
): number | undefined {
  const fallback = status === 429 ? 60 : status === 503 || (status === 409 && code === "in-progress") ? 5 : undefined;
  if (fallback === undefined) return undefined;
  return (parseRetryAfter(retryAfter) ?? fallback) * seconds;
}

/** Seconds of a `Retry-After` header, capped at ten minutes; undefined where it is neither seconds nor a date. */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d{1,6}$/.test(text)) return Math.min(Number(text), 600);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.min(600, Math.max(0, (date - Date.now()) / seconds));
}

export const networkErrorWaitMs = afterNetworkErrorMs;

/** Resolves after `ms`, rejects when the signal aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort, { once: true });
  });
}
