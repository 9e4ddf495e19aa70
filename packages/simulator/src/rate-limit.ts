import { rateLimited } from "./answer.js";
import type { Clock } from "./clock.js";
import type { SimulatorConfig } from "./config.js";

interface Window {
  startedAt: number;
  used: number;
  blockedUntil: number;
}

/** RateLimit-* headers of an answer. */
export interface RateLimitHeaders {
  readonly "ratelimit-limit": string;
  readonly "ratelimit-remaining": string;
  /** Seconds until the window starts again. */
  readonly "ratelimit-reset": string;
}

/** One fixed window per workspace. Every authenticated call costs one, a replay too. */
export class RateLimiter {
  readonly #windows = new Map<string, Window>();
  readonly #clock: Clock;
  readonly #config: SimulatorConfig;

  constructor(clock: Clock, config: SimulatorConfig) {
    this.#clock = clock;
    this.#config = config;
  }

  /**
   * Takes one call out of the workspace's window; `setHeaders` gets the counters also when the call is refused.
   * @throws ProviderError 429 `rate_limited` with Retry-After.
   */
  take(workspace: string, setHeaders: (headers: RateLimitHeaders) => void): void {
    const { limit, windowMs } = this.#config.rateLimit;
    const now = this.#clock.now();
    const window = this.#window(workspace, now, windowMs);
    const blockedMs = window.blockedUntil - now;
    const resetMs = Math.max(window.startedAt + windowMs - now, blockedMs);
    const refused = window.used >= limit || blockedMs > 0;
    if (!refused) window.used += 1;
    const resetSeconds = Math.max(1, Math.ceil(resetMs / 1_000));
    setHeaders({
      "ratelimit-limit": String(limit),
      "ratelimit-remaining": String(blockedMs > 0 ? 0 : limit - window.used),
      "ratelimit-reset": String(resetSeconds),
    });
    if (refused) throw rateLimited(window.used >= limit ? resetSeconds : Math.max(1, Math.ceil(blockedMs / 1_000)));
  }

  /** Refuses every call of a workspace for a time: a burst of 429. */
  block(workspace: string, ms: number): void {
    const now = this.#clock.now();
    const window = this.#window(workspace, now, this.#config.rateLimit.windowMs);
    window.blockedUntil = Math.max(window.blockedUntil, now + ms);
  }

  #window(workspace: string, now: number, windowMs: number): Window {
    const known = this.#windows.get(workspace);
    if (known === undefined) {
      const fresh = { startedAt: now, used: 0, blockedUntil: 0 };
      this.#windows.set(workspace, fresh);
      return fresh;
    }
    if (now >= known.startedAt + windowMs) {
      known.startedAt = now;
      known.used = 0;
    }
    return known;
  }
}
