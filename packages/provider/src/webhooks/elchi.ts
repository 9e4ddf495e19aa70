import { createHmac, timingSafeEqual } from "node:crypto";
import type { VerifyResult, WebhookSecret } from "../port.js";

type Headers = Record<string, string | string[] | undefined>;

/** A timestamp may differ from our clock by this much, either way. */
export const ELCHI_TOLERANCE_MS = 5 * 60 * 1000;
/** A sender signs with two secrets during a rotation; nobody needs us to try a thousand. */
const MAX_SIGNATURES = 16;
const MAX_HEADER_CHARACTERS = 16 * 1024;

/**
 * `Elchi-Signature: t=<unix seconds>,v1=<hex>[,v1=…]`: HMAC-SHA256 with the whole secret text (`whsec_` included) over
 * `t`, a dot and the raw body. Constant time; any active secret and any of the first 16 signatures may match; the
 * digest is 64 lower-case hex digits (upper case is refused); unknown tags are ignored. Never throws.
 */
export function verifyElchi(
  rawBody: Uint8Array,
  headers: Headers,
  secrets: readonly WebhookSecret[],
  nowMs: number,
): VerifyResult {
  const header = headerValues(headers, "elchi-signature").join(",");
  if (header === "") return { ok: false, reason: "missing-header" };
  const signed = parseHeader(header);
  if (signed === undefined) return { ok: false, reason: "malformed-header" };
  const secret = secrets.find((candidate) => matches(signed, rawBody, candidate));
  if (secret === undefined) return { ok: false, reason: "no-matching-signature" };
  const signedAt = Number(signed.timestamp) * 1000;
  // After the signature, so that this answer always means a genuine delivery: a replay, or a clock that is off.
  if (Math.abs(nowMs - signedAt) > ELCHI_TOLERANCE_MS) return { ok: false, reason: "timestamp-out-of-window" };
  return { ok: true, secretId: secret.secretId, signedAt };
}

/** The `Elchi-Event-Id` header, only ever to compare with the signed body: it is not covered by the signature. */
export function elchiHeaderId(headers: Headers): string | undefined {
  const values = headerValues(headers, "elchi-event-id");
  return values.length === 0 ? undefined : values.join(",").trim();
}

interface SignedHeader {
  /** As sent: it is part of what was signed. */
  timestamp: string;
  signatures: Buffer[];
}

function parseHeader(header: string): SignedHeader | undefined {
  if (header.length > MAX_HEADER_CHARACTERS) return undefined;
  const entries = header.split(",").map((entry) => entry.trim());
  const timestamps = new Set(entries.filter((entry) => entry.startsWith("t=")).map((entry) => entry.slice(2)));
  const [timestamp] = timestamps;
  // Plain digits only: Number("1e9"), " 1" or "" would be numbers, too. A header sent twice has to agree with itself.
  if (timestamps.size !== 1 || timestamp === undefined || !/^[0-9]{1,15}$/.test(timestamp)) return undefined;
  const signatures = entries.filter((entry) => entry.startsWith("v1=")).slice(0, MAX_SIGNATURES);
  if (signatures.length === 0) return undefined;
  return {
    timestamp,
    // Buffer.from(…, "hex") stops at the first wrong digit without a word: check the form first.
    signatures: signatures
      .map((entry) => entry.slice(3))
      .filter((text) => /^[0-9a-f]{64}$/.test(text))
      .map((text) => Buffer.from(text, "hex")),
  };
}

function matches(signed: SignedHeader, rawBody: Uint8Array, { secret }: WebhookSecret): boolean {
  // Anybody could sign with an empty secret.
  if (secret === "") return false;
  const expected = createHmac("sha256", secret).update(`${signed.timestamp}.`).update(rawBody).digest();
  return signed.signatures.some((signature) => timingSafeEqual(signature, expected));
}

/** Header names are case-insensitive, and a header may come more than once. */
function headerValues(headers: Headers, name: string): string[] {
  return Object.entries(headers).flatMap(([key, value]) => {
    if (key.toLowerCase() !== name || value === undefined) return [];
    return Array.isArray(value) ? value : [value];
  });
}
