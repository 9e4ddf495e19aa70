import type { DeliveryHeaders, VerifyResult, WebhookSecret } from "../port.js";
import type { WebhookScheme } from "./scheme.js";
import {
  type Claim,
  checkHmac,
  type HmacRule,
  headerValues,
  isTimestamp,
  MAX_HEADER_CHARACTERS,
  MAX_SIGNATURES,
  prefixedSecretFault,
  TOLERANCE_MS,
} from "./signature.js";

const rule: HmacRule = { encoding: "hex", key: (secret) => secret, toleranceMs: TOLERANCE_MS };

/**
 * `<header>: t=<unix seconds>,v1=<hex>[,v1=…]`: HMAC-SHA256 with the whole secret text (`whsec_` included) over `t`, a dot
 * and the raw body. Any active secret and any of the first 16 signatures may match; the digest is 64 lower-case hex digits
 * (upper case is refused); unknown tags are ignored. Never throws.
 */
export function verifyTimestamped(
  header: string,
  rawBody: Uint8Array,
  headers: DeliveryHeaders,
  secrets: readonly WebhookSecret[],
  nowMs: number,
): VerifyResult {
  const value = headerValues(headers, header).join(",");
  if (value === "") return { ok: false, reason: "missing-header" };
  const claim = readClaim(value, rawBody);
  return claim === undefined ? { ok: false, reason: "malformed-header" } : checkHmac(claim, rule, secrets, nowMs);
}

function readClaim(header: string, rawBody: Uint8Array): Claim | undefined {
  if (header.length > MAX_HEADER_CHARACTERS) return undefined;
  const entries = header.split(",").map((entry) => entry.trim());
  const timestamps = new Set(entries.filter((entry) => entry.startsWith("t=")).map((entry) => entry.slice(2)));
  const [timestamp] = timestamps;
  // A header sent twice has to agree with itself.
  if (timestamps.size !== 1 || timestamp === undefined || !isTimestamp(timestamp)) return undefined;
  const signatures = entries.filter((entry) => entry.startsWith("v1=")).slice(0, MAX_SIGNATURES);
  if (signatures.length === 0) return undefined;
  return {
    message: [timestamp, ".", rawBody],
    signatures: signatures.map((entry) => entry.slice(3)),
    timestamp,
  };
}

/** `Stripe-Signature: t=,v1=`. Stricter than Stripe's own library, which accepts a time in the future. */
export const stripe: WebhookScheme = {
  name: "stripe",
  title: "Stripe",
  covers: "time-and-body",
  authenticatesBody: true,
  toleranceMs: TOLERANCE_MS,
  headers: ["stripe-signature"],
  eventId: "body",
  checkSecret: prefixedSecretFault,
  verify: (...delivery) => verifyTimestamped("stripe-signature", ...delivery),
  authentication: "Strong: an HMAC-SHA256 over time and raw body; a captured delivery is refused after five minutes.",
  deduplication: "Strong: the event id is in the signed body and stays the same on every attempt.",
};
