import { parseStrictJson } from "../strict-json.js";

/** More events in one delivery are refused as a whole. */
export const MAX_EVENTS = 1_000;

/** A delivery that is an array of more events than anybody has a use for. */
export class TooManyEventsError extends Error {
  override readonly name = "TooManyEventsError";
  readonly code = "too-many-events";
  readonly safeMessage = `a delivery may carry at most ${MAX_EVENTS} events`;
}

/**
 * The exact bytes of each element where the body is a JSON array (each is then an event of its own, in this order);
 * undefined where it is not, or where it is no unambiguous JSON. Throws TooManyEventsError above 1,000 elements.
 */
export function splitEvents(rawBody: Uint8Array): Uint8Array[] | undefined {
  const open = rawBody.findIndex((byte) => !isSpace(byte));
  if (rawBody[open] !== 0x5b) return undefined;
  const parsed = parseStrictJson(rawBody);
  if (parsed === undefined || !Array.isArray(parsed.value)) return undefined;
  if (parsed.value.length > MAX_EVENTS) throw new TooManyEventsError();
  return parsed.value.length === 0 ? [] : elements(rawBody, open + 1);
}

/** `bytes` are known to be a valid, non-empty array whose elements begin at `start`: only commas and ends are looked for. */
function elements(bytes: Uint8Array, start: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  let depth = 0;
  let inString = false;
  let from = start;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inString) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (depth === 0 && (byte === 0x2c || byte === 0x5d)) {
      found.push(trimmed(bytes, from, at));
      from = at + 1;
      if (byte === 0x5d) break;
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return found;
}

function trimmed(bytes: Uint8Array, start: number, end: number): Uint8Array {
  let [from, to] = [start, end];
  while (from < to && isSpace(bytes[from])) from += 1;
  while (to > from && isSpace(bytes[to - 1])) to -= 1;
  return bytes.subarray(from, to);
}

/** The four characters that JSON calls white space. */
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
