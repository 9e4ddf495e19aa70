import type { ResponseHeaders } from "./http-call.js";

/** No provider makes us wait longer than this by a header; a value at the cap is worth a ticket. */
export const RETRY_AFTER_CAP_MS = 24 * 60 * 60 * 1000;

/**
 * `Retry-After` in ms: whole seconds or an HTTP date, counted from the answer's own `Date` where it has one (the
 * provider's clock need not be ours). Garbage, zero and the past are undefined; several values: the longest.
 */
export function retryAfterMs(headers: ResponseHeaders, receivedAtMs: number): number | undefined {
  const raw = headers["retry-after"];
  const values = raw === undefined ? [] : Array.isArray(raw) ? raw : [raw];
  const waits = values.map((value) => waitOf(value.trim(), headers, receivedAtMs)).filter((wait) => wait > 0);
  return waits.length === 0 ? undefined : Math.min(RETRY_AFTER_CAP_MS, Math.max(...waits));
}

function waitOf(value: string, headers: ResponseHeaders, receivedAtMs: number): number {
  if (/^[0-9]{1,12}$/.test(value)) return Number(value) * 1000;
  const until = httpDate(value);
  if (until === undefined) return 0;
  const date = headers.date;
  const answeredAt = typeof date === "string" ? httpDate(date.trim()) : undefined;
  return until - (answeredAt ?? receivedAtMs);
}

/** Only the IMF-fixdate form of RFC 9110: `Date.parse` alone would also take "12" or "May". */
function httpDate(value: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : at;
}
