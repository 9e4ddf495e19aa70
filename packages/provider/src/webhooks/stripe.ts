import type { WebhookScheme } from "./scheme.js";
import {
  headerValues,
  hmacVerifier,
  isTimestamp,
  MAX_HEADER_CHARACTERS,
  MAX_SIGNATURES,
  malformed,
  missing,
  prefixedSecretFault,
  TOLERANCE_MS,
} from "./signature.js";

/**
 * `<header>: t=<unix seconds>,v1=<hex>[,v1=…]`: HMAC-SHA256 with the whole secret text (`whsec_` included) over `t`, a dot
 * and the raw body. Any active secret and any of the first 16 signatures may match; the digest is 64 lower-case hex digits
 * (upper case is refused); unknown tags are ignored.
 */
export function timestampedHeader(name: string): ReturnType<typeof hmacVerifier> {
  return hmacVerifier(
    (rawBody, headers) => {
      const header = headerValues(headers, name).join(",");
      if (header === "") return missing(name);
      if (header.length > MAX_HEADER_CHARACTERS) return malformed(name, "is endless");
      const entries = header.split(",").map((entry) => entry.trim());
      const times = new Set(entries.filter((entry) => entry.startsWith("t=")).map((entry) => entry.slice(2)));
      const [timestamp] = times;
      if (timestamp === undefined) return malformed(name, "has no t=");
      // A header sent twice has to agree with itself.
      if (times.size > 1) return malformed(name, "has several t= that differ");
      if (!isTimestamp(timestamp)) return malformed(name, "has a t= that is not plain Unix seconds");
      const signatures = entries.filter((entry) => entry.startsWith("v1=")).slice(0, MAX_SIGNATURES);
      if (signatures.length === 0) return malformed(name, "has no v1=");
      return {
        message: [timestamp, ".", rawBody],
        signatures: signatures.map((entry) => entry.slice(3)),
        signedIn: name,
        timestamp,
      };
    },
    { encoding: "hex", key: (secret) => secret, toleranceMs: TOLERANCE_MS },
  );
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
  ...timestampedHeader("stripe-signature"),
  authentication: "Strong: an HMAC-SHA256 over time and raw body; a captured delivery is refused after five minutes.",
  deduplication: "Strong: the event id is in the signed body and stays the same on every attempt.",
};
