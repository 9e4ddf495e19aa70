import type { WebhookScheme } from "./scheme.js";
import {
  commonSecretFault,
  headerValues,
  hmacVerifier,
  MAX_HEADER_CHARACTERS,
  malformed,
  missing,
} from "./signature.js";

const header = "x-hub-signature-256";

/** `X-Hub-Signature-256: sha256=<hex>`: HMAC-SHA256 with the secret text over the raw body, as GitHub signs. */
export const hmacSha256: WebhookScheme = {
  name: "hmac-sha256",
  title: "HMAC-SHA256 of the body (GitHub style)",
  covers: "body",
  authenticatesBody: true,
  headers: [header],
  eventId: "body",
  checkSecret: commonSecretFault,
  ...hmacVerifier(
    (rawBody, headers) => {
      const value = headerValues(headers, header).join(",");
      if (value.trim() === "") return missing(header);
      if (value.length > MAX_HEADER_CHARACTERS) return malformed(header, "is endless");
      const signatures = value
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry.startsWith("sha256="))
        .map((entry) => entry.slice("sha256=".length));
      if (signatures.length === 0) return malformed(header, "has no sha256=");
      return { message: [rawBody], signatures, signedIn: header };
    },
    { encoding: "hex", key: (secret) => secret },
  ),
  authentication:
    "Good: an HMAC-SHA256 over the raw body; no time is signed, so a captured delivery verifies until the secret changes.",
  deduplication: "Strong: the event id is in the signed body, so a replay is recognised however old it is.",
};
