/** How long to wait between tries that may collide with other workers' tries. */
export interface BackoffOptions {
  /** Ceiling of the first wait in milliseconds. */
  readonly baseMs: number;
  /** No wait is ever longer, in milliseconds. */
  readonly maxMs: number;
}

/**
 * Exponential back-off with full jitter: a wait in [0, min(maxMs, baseMs · 2^(attempt−1))), in whole milliseconds.
 * Full jitter, since workers that failed together would otherwise return together.
 * @param attempt tries made so far, from 1; smaller values count as 1
 * @param random a source in [0, 1), for tests
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: () => number = Math.random): number {
  const exponent = Math.max(0, Math.floor(attempt) - 1);
  const ceiling = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(exponent, 1000));
  return Math.floor(random() * ceiling);
}
