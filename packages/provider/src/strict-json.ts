/** A JSON object as parsed; members are still to be checked. */
export type JsonObject = { readonly [member: string]: unknown };

const MAX_DEPTH = 64;

/**
 * Bytes to a JSON object, or undefined where any reader could understand them differently: not UTF-8, a byte-order
 * mark, a member name twice, an unpaired surrogate (escaped, too), deeper than 64, or not an object. Never throws.
 */
export function parseStrictObject(bytes: Uint8Array): JsonObject | undefined {
  const parsed = parseStrictJson(bytes);
  return isJsonObject(parsed?.value) ? parsed.value : undefined;
}

/** As `parseStrictObject`, for any JSON value. Never throws. */
export function parseStrictJson(bytes: Uint8Array): { readonly value: unknown } | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const value: unknown = JSON.parse(text);
    return isUnambiguous(text) ? { value } : undefined;
  } catch {
    // Both calls throw for exactly one reason: these bytes are not JSON in UTF-8.
    return undefined;
  }
}

/** Is it an object, and neither null nor an array? */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `text` is known to be valid JSON: so a string directly after "{" or "," of an object is a member name. */
function isUnambiguous(text: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  let nameNext = false;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/g)) {
    if (token === "{" || token === "[") {
      open.push(token === "{" ? new Set() : undefined);
      if (open.length > MAX_DEPTH) return false;
      nameNext = token === "{";
    } else if (token === "}" || token === "]") {
      open.pop();
      nameNext = false;
    } else if (token === ",") {
      nameNext = open.at(-1) !== undefined;
    } else {
      const value: unknown = JSON.parse(token);
      if (typeof value !== "string" || !value.isWellFormed()) return false;
      const names = open.at(-1);
      if (nameNext && names !== undefined) {
        if (names.has(value)) return false;
        names.add(value);
      }
      nameNext = false;
    }
  }
  return true;
}
