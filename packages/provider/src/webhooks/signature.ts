import { createHmac, timingSafeEqual } from "node:crypto";
import type { DeliveryHeaders, VerifyResult, WebhookSecret } from "../port.js";
import type { ProofFault, WebhookScheme } from "./scheme.js";

/** A signed time may differ from our clock by this much, either way: what every scheme with a time documents. */
export const TOLERANCE_MS = 5 * 60 * 1000;
/** A sender signs with two secrets during a rotation; nobody needs us to try a thousand. */
export const MAX_SIGNATURES = 16;
/** Longer is refused unread, header by header. */
export const MAX_HEADER_CHARACTERS = 16 * 1024;

/** What a delivery claims, before anything of it is believed. */
export interface Claim {
  /** What was signed, piece by piece. */
  readonly message: readonly (string | Uint8Array)[];
  /** As sent; the first 16 are tried, and only those that have the form of one. */
  readonly signatures: readonly string[];
  /** The header that they came in, lower case; absent: the body. */
  readonly signedIn?: string;
  /** Unix seconds, as sent. */
  readonly timestamp?: string;
}

/** How a scheme writes its HMAC-SHA256, and what its key is. */
export interface HmacRule {
  readonly encoding: "hex" | "base64";
  /** The key's bytes; undefined where the text can't be one. The empty text never gets here. */
  key(secret: string): string | Uint8Array | undefined;
  /** How far `timestamp` may be from our clock, ms. */
  readonly toleranceMs?: number;
}

const form = { hex: /^[0-9a-f]{64}$/, base64: /^[A-Za-z0-9+/]{43}=$/ } as const;
const formInWords = { hex: "64 lower-case hex digits", base64: "44 characters of base64" } as const;

/** Reads what a delivery claims, or why that can't be read. */
export type ReadClaim = (rawBody: Uint8Array, headers: DeliveryHeaders) => Claim | ProofFault;

/** What verifying means where a scheme is one HMAC-SHA256 over bytes that `read` puts together. */
export function hmacVerifier(
  read: ReadClaim,
  rule: HmacRule,
): Pick<WebhookScheme, "verify" | "fault"> & Required<Pick<WebhookScheme, "fitsKey">> {
  return {
    verify: (rawBody, headers, secrets, nowMs) => {
      const claim = read(rawBody, headers);
      return "reason" in claim ? { ok: false, reason: claim.reason } : checkHmac(claim, rule, secrets, nowMs);
    },
    fault: (rawBody, headers) => {
      const claim = read(rawBody, headers);
      if ("reason" in claim) return claim;
      if (wellFormed(claim, rule).length > 0) return undefined;
      const where = claim.signedIn === undefined ? {} : { header: claim.signedIn };
      const fault = `has no signature of ${formInWords[rule.encoding]}`;
      return { reason: claim.signedIn === undefined ? "unreadable-body" : "malformed-header", ...where, fault };
    },
    fitsKey: (rawBody, headers, key) => {
      const claim = read(rawBody, headers);
      return !("reason" in claim) && key.length > 0 && fits(claim, rule, key);
    },
  };
}

const wellFormed = (claim: Claim, { encoding }: HmacRule): string[] =>
  claim.signatures.slice(0, MAX_SIGNATURES).filter((text) => form[encoding].test(text));

/** Does any signature of the claim match with any of the secrets? Constant time per comparison. Never throws. */
function checkHmac(claim: Claim, rule: HmacRule, secrets: readonly WebhookSecret[], nowMs: number): VerifyResult {
  const secret = secrets.find(({ secret: text }) => {
    // Anybody could sign with an empty secret.
    const key = text === "" ? undefined : rule.key(text);
    return key !== undefined && fits(claim, rule, key);
  });
  if (secret === undefined) return { ok: false, reason: "no-matching-signature" };
  const { secretId } = secret;
  if (claim.timestamp === undefined) return { ok: true, secretId };
  const signedAt = Number(claim.timestamp) * 1000;
  // After the signature, so that this answer always means a genuine delivery: a replay, or a clock that is off.
  if (rule.toleranceMs !== undefined && Math.abs(nowMs - signedAt) > rule.toleranceMs) {
    return { ok: false, reason: "timestamp-out-of-window", secretId, signedAt };
  }
  return { ok: true, secretId, signedAt };
}

function fits(claim: Claim, rule: HmacRule, key: string | Uint8Array): boolean {
  const signatures = wellFormed(claim, rule);
  if (signatures.length === 0) return false;
  const hmac = createHmac("sha256", key);
  for (const piece of claim.message) hmac.update(piece);
  const expected = hmac.digest(rule.encoding);
  return signatures.some((signature) => sameText(signature, expected));
}

/** Compares the written form: two base64 texts that decode to the same bytes are two texts. */
function sameText(text: string, expected: string): boolean {
  const [left, right] = [Buffer.from(text, "latin1"), Buffer.from(expected, "latin1")];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Plain digits only: Number("1e9"), " 1" or "" would be numbers, too. */
export const isTimestamp = (text: string): boolean => /^[0-9]{1,15}$/.test(text);

/** Header names are case-insensitive, and a header may come more than once. */
export function headerValues(headers: DeliveryHeaders, name: string): string[] {
  return Object.entries(headers).flatMap(([key, value]) => {
    if (value === undefined || key.toLowerCase() !== name) return [];
    return Array.isArray(value) ? value : [value];
  });
}

/** What a header says that has one value: absent, that value, or nothing usable (endless, or contradicting itself). */
export type SingleHeader =
  | { readonly kind: "absent" }
  | { readonly kind: "value"; readonly value: string }
  | { readonly kind: "unusable" };

/** A header that has one value. Sent twice it has to agree with itself; Node joins repeats with a comma and a space. */
export function singleHeader(headers: DeliveryHeaders, name: string): SingleHeader {
  const values = headerValues(headers, name);
  if (values.every((value) => value.trim() === "")) return { kind: "absent" };
  if (values.some((value) => value.length > MAX_HEADER_CHARACTERS)) return { kind: "unusable" };
  const different = new Set(values.flatMap((value) => value.split(", ")).map((value) => value.trim()));
  const [value] = different;
  return different.size === 1 && value !== undefined ? { kind: "value", value } : { kind: "unusable" };
}

/** A header that has no usable value, as a fault. */
export const faultOf = (header: string, { kind }: Exclude<SingleHeader, { kind: "value" }>): ProofFault =>
  kind === "absent" ? missing(header) : malformed(header, "is endless, or comes more than once with different values");

export const missing = (header: string): ProofFault => ({
  reason: "missing-header",
  header,
  fault: "is missing or empty",
});
export const malformed = (header: string, fault: string): ProofFault => ({ reason: "malformed-header", header, fault });

/** What no scheme takes as a secret. */
export function commonSecretFault(secret: string): string | undefined {
  if (secret === "") return "it is empty";
  if (secret.trim() !== secret) return "it begins or ends with white space";
  return undefined;
}

/** For schemes whose secret is the whole text, `whsec_` included. */
export function prefixedSecretFault(secret: string): string | undefined {
  const fault = commonSecretFault(secret);
  if (fault !== undefined) return fault;
  return /^whsec_./.test(secret)
    ? undefined
    : "it does not begin with whsec_; the whole text is the key, prefix included";
}
