import { gunzipSync } from "node:zlib";

/** What happens to a body between the sender and the file it is read from. */
export type ByteChange =
  | "trailing-newline-added"
  | "trailing-newline-removed"
  | "line-endings"
  | "byte-order-mark"
  | "json-reserialised"
  | "gzipped";

/** A body as it may have been when it was signed. */
export interface BodyVariant {
  readonly problem: ByteChange;
  readonly body: Uint8Array;
}

/** Unpacked bodies above this are no webhook. */
const MAX_UNPACKED = 16 * 1024 * 1024;
const mark = Buffer.from([0xef, 0xbb, 0xbf]);

/** The body with each usual change undone, one at a time; only those that differ from it. Never throws. */
export function bodyVariants(rawBody: Uint8Array): BodyVariant[] {
  const body = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  const text = body.toString("latin1");
  const variants: [ByteChange, Buffer][] = [
    ["trailing-newline-added", Buffer.from(text.replace(/\r?\n$/, ""), "latin1")],
    ["trailing-newline-added", Buffer.from(text.replace(/[\r\n]+$/, ""), "latin1")],
    ["trailing-newline-removed", Buffer.from(`${text}\n`, "latin1")],
    ["trailing-newline-removed", Buffer.from(`${text}\r\n`, "latin1")],
    ["line-endings", Buffer.from(text.replaceAll("\r\n", "\n"), "latin1")],
    ["line-endings", Buffer.from(text.replace(/\r?\n/g, "\r\n"), "latin1")],
    ["byte-order-mark", body.subarray(0, 3).equals(mark) ? body.subarray(3) : Buffer.concat([mark, body])],
    ...reserialised(body).map((again): [ByteChange, Buffer] => ["json-reserialised", Buffer.from(again)]),
    ...unpacked(body).map((plain): [ByteChange, Buffer] => ["gzipped", plain]),
  ];
  return variants.filter(([, bytes]) => !bytes.equals(body)).map(([problem, bytes]) => ({ problem, body: bytes }));
}

/** The same JSON as the usual serialisers write it: compact, with spaces, indented; letters beyond ASCII as they are or escaped. */
function reserialised(body: Buffer): string[] {
  const value = parsed(body);
  if (value === undefined) return [];
  // A string's own line breaks are escaped, so every line break here is the serialiser's.
  const spaced = JSON.stringify(value, null, 1).replace(/,\n */g, ", ").replace(/\n */g, "");
  const plain = [JSON.stringify(value), spaced, JSON.stringify(value, null, 2), JSON.stringify(value, null, 4)];
  return plain.flatMap((text) => [text, escaped(text), escaped(text).replaceAll("/", "\\/"), `${text}\n`]);
}

const escaped = (text: string): string =>
  text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

function parsed(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return value;
  } catch {
    // Not JSON: then nobody has re-serialised it.
    return undefined;
  }
}

function unpacked(body: Buffer): Buffer[] {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return [];
  try {
    return [gunzipSync(body, { maxOutputLength: MAX_UNPACKED })];
  } catch {
    // Only looks like gzip, or is endless: not what was signed either way.
    return [];
  }
}

const words: Record<ByteChange, { message: string; remedy: string }> = {
  "trailing-newline-added": {
    message: "The bytes have a line break at their end that was not signed.",
    remedy: "Keep the body exactly as it came: an editor, echo or a shell added the line break.",
  },
  "trailing-newline-removed": {
    message: "The signed bytes ended with a line break that is missing here.",
    remedy: "Keep the body exactly as it came: something trims it before it is verified or saved.",
  },
  "line-endings": {
    message: "The line endings were changed: with the other kind the signature fits.",
    remedy: "Keep the body exactly as it came: a text-mode transfer, an editor or git rewrote its line endings.",
  },
  "byte-order-mark": {
    message: "A byte-order mark was added to or taken from the beginning of the bytes.",
    remedy: "Keep the body exactly as it came: an editor or a text decoder touched its first bytes.",
  },
  "json-reserialised": {
    message: "The JSON was parsed and written anew: written in another form, the signature fits.",
    remedy: "Verify the raw bytes: a proxy, framework or log rewrote the JSON on the way.",
  },
  gzipped: {
    message: "The bytes are gzip, and the signature fits them unpacked.",
    remedy: "Unpack before verifying: set the endpoint's gzip to the content.",
  },
};

/** One sentence on what happened to the bytes and one on what to do. */
export const bytesInWords = (problem: ByteChange): { message: string; remedy: string } => words[problem];
