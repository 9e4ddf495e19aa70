/** Any value that JSON text can express. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** Why a text was refused by {@link parseStrictJson}. */
export type StrictJsonReason =
  | "not-utf8"
  | "not-json"
  | "duplicate-key"
  | "unsafe-integer"
  | "number-out-of-range"
  | "lone-surrogate"
  | "too-deep";

const explanations: Record<StrictJsonReason, string> = {
  "not-utf8": "the bytes are not valid UTF-8",
  "not-json": "the text is not one JSON value",
  "duplicate-key": "a member name occurs twice in one object",
  "unsafe-integer": "an integer is beyond ±(2^53 − 1) and would change its value when read",
  "number-out-of-range": "a number cannot be held as a double",
  "lone-surrogate": "a string holds an unpaired surrogate",
  "too-deep": "arrays and objects are nested too deeply",
};

/**
 * Refusal of a JSON text. `path` (a JSON Pointer, RFC 6901) says where; it repeats member names of the input, so it is
 * for the answer to the sender and never part of the message, which may be logged.
 */
export class StrictJsonError extends Error {
  override readonly name = "StrictJsonError";
  readonly reason: StrictJsonReason;
  readonly path: string;
  readonly safeMessage: string;

  constructor(reason: StrictJsonReason, path: string) {
    super(`JSON refused: ${explanations[reason]}`);
    this.reason = reason;
    this.path = path;
    this.safeMessage = this.message;
  }
}

/** Deepest nesting of arrays and objects that {@link parseStrictJson} takes. */
export const maxJsonDepth = 64;

/**
 * Reads JSON that will be hashed or acted on, refusing every text that two readers could understand differently:
 * repeated member names (also with equal values), integers that a double can't hold, unpaired surrogates, invalid
 * UTF-8, nesting beyond {@link maxJsonDepth}. `__proto__` is an ordinary member.
 *
 * The native parser decides the grammar; a scan of the same text then sees what the parser resolves silently.
 * @throws StrictJsonError
 */
export function parseStrictJson(input: string | Uint8Array): JsonValue {
  const text = typeof input === "string" ? input : decodeUtf8(input);
  if (!text.isWellFormed()) throw new StrictJsonError("lone-surrogate", "");
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new StrictJsonError("not-json", "");
    throw error;
  }
  scan(text);
  return value;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) throw new StrictJsonError("not-utf8", "");
    throw error;
  }
}

interface ObjectFrame {
  readonly kind: "object";
  readonly keys: Set<string>;
  key: string;
  expectsKey: boolean;
}
interface ArrayFrame {
  readonly kind: "array";
  index: number;
}
type Frame = ObjectFrame | ArrayFrame;

// The text is known to be JSON here, so tokens need no validation; white space and colons fall between matches. Only the
// opening quote of a string is matched: a pattern for whole strings would exhaust the stack on long ones.
const token = /["{}[\],]|-?\d[\d.eE+-]*/g;

function scan(text: string): void {
  const stack: Frame[] = [];
  token.lastIndex = 0;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [word] = match;
    const frame = stack.at(-1);
    switch (word) {
      case "{":
        push(stack, { kind: "object", keys: new Set(), key: "", expectsKey: true });
        break;
      case "[":
        push(stack, { kind: "array", index: 0 });
        break;
      case "}":
      case "]":
        stack.pop();
        break;
      case ",":
        if (frame?.kind === "object") frame.expectsKey = true;
        else if (frame !== undefined) frame.index += 1;
        break;
      case '"':
        token.lastIndex = endOfString(text, match.index);
        checkString(text.slice(match.index, token.lastIndex), frame, stack);
        break;
      default:
        checkNumber(word, stack);
    }
  }
}

/** Index after the quote that closes the string which opens at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

// A quote is escaped when an odd number of backslashes stands before it.
function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === 0x5c) before -= 1;
  return (at - before) % 2 === 1;
}

function push(stack: Frame[], frame: Frame): void {
  if (stack.length >= maxJsonDepth) throw new StrictJsonError("too-deep", pointer(stack));
  stack.push(frame);
}

function checkString(raw: string, frame: Frame | undefined, stack: Frame[]): void {
  const value = raw.includes("\\") ? String(JSON.parse(raw)) : raw.slice(1, -1);
  const isKey = frame?.kind === "object" && frame.expectsKey;
  // A name that can't be repeated in an answer is reported by the object that holds it.
  if (!value.isWellFormed()) throw new StrictJsonError("lone-surrogate", pointer(isKey ? stack.slice(0, -1) : stack));
  if (!isKey) return;
  frame.key = value;
  frame.expectsKey = false;
  if (frame.keys.has(value)) throw new StrictJsonError("duplicate-key", pointer(stack));
  frame.keys.add(value);
}

function checkNumber(raw: string, stack: Frame[]): void {
  const value = Number(raw);
  const vanished = value === 0 && /[1-9]/.test(raw.split(/[eE]/)[0] ?? "");
  if (!Number.isFinite(value) || vanished) throw new StrictJsonError("number-out-of-range", pointer(stack));
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new StrictJsonError("unsafe-integer", pointer(stack));
  }
}

function pointer(stack: readonly Frame[]): string {
  return stack
    .map((frame) => (frame.kind === "array" ? String(frame.index) : frame.key))
    .map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}
