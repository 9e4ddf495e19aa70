import type { ResponseHeaders } from "./http-call.js";
import type { RateLimit } from "./port.js";

/** A reset beyond this is a moment (Unix seconds), not a distance. */
const earliestUnixSeconds = 1_000_000_000;

/**
 * Reads `RateLimit-Remaining` and `RateLimit-Reset` (IETF draft), or the older `X-RateLimit-*` form, whose reset is often
 * a Unix time. undefined unless both are whole numbers. Pure.
 */
export function rateLimitOf(headers: ResponseHeaders, nowMs: number): RateLimit | undefined {
  const remaining = whole(headers["ratelimit-remaining"] ?? headers["x-ratelimit-remaining"]);
  const reset = whole(headers["ratelimit-reset"] ?? headers["x-ratelimit-reset"]);
  if (remaining === undefined || reset === undefined) return undefined;
  const resetMs = reset >= earliestUnixSeconds ? Math.max(0, reset * 1000 - nowMs) : reset * 1000;
  return { remaining, resetMs };
}

function whole(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,12}$/.test(header) ? Number(header) : undefined;
}
