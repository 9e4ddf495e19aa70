import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** A value that has no one canonical JSON form. The message names the kind, never the value. */
export class CanonicalJsonError extends Error {
  override readonly name = "CanonicalJsonError";
  readonly safeMessage: string;

  constructor(problem: string) {
    super(`no canonical JSON: ${problem}`);
    this.safeMessage = this.message;
  }
}

// Above what parseStrictJson lets in, so that an accepted payload still fits inside our own envelope.
const maxDepth = 128;

/**
 * RFC 8785 text of a value. Members that are `undefined` are left out, as JSON storage leaves them out, so that the hash
 * before storage equals the hash after. Everything that storage would turn into something else is refused: `undefined`
 * in arrays, functions, symbols, bigints, NaN and infinities, unpaired surrogates, dates, maps, class instances,
 * circular or extremely deep structures.
 * @throws CanonicalJsonError
 */
export function canonicalJson(value: unknown): string {
  check(value, 0);
  const text = canonicalize(value);
  if (text === undefined) throw new CanonicalJsonError("the value is undefined");
  return text;
}

function check(value: unknown, depth: number): void {
  if (depth > maxDepth) throw new CanonicalJsonError("nested too deeply or circular");
  switch (typeof value) {
    case "boolean":
      return;
    case "string":
      checkString(value);
      return;
    case "number":
      if (!Number.isFinite(value)) throw new CanonicalJsonError("a number is not finite");
      return;
    case "object":
      if (value !== null) checkContainer(value, depth);
      return;
    default:
      throw new CanonicalJsonError(`a value of type ${typeof value}`);
  }
}

function checkContainer(value: object, depth: number): void {
  if (Array.isArray(value)) {
    // An index loop, since forEach and map step over holes.
    for (let index = 0; index < value.length; index += 1) check(value[index], depth + 1);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new CanonicalJsonError("an object that is not a plain record");
  }
  for (const [key, member] of Object.entries(value)) {
    checkString(key);
    if (member !== undefined) check(member, depth + 1);
  }
}

function checkString(text: string): void {
  if (!text.isWellFormed()) throw new CanonicalJsonError("an unpaired surrogate in a string");
}

/** SHA-256 of the bytes, or of the text's UTF-8: 32 bytes. */
export function sha256(input: string | Uint8Array): Buffer {
  return createHash("sha256").update(input).digest();
}
