import type { WebhookScheme } from "./scheme.js";
import { checkHmac, commonSecretFault, type HmacRule, headerValues, MAX_HEADER_CHARACTERS } from "./signature.js";

const header = "x-hub-signature-256";
const rule: HmacRule = { encoding: "hex", key: (secret) => secret };

/** `X-Hub-Signature-256: sha256=<hex>`: HMAC-SHA256 with the secret text over the raw body, as GitHub signs. */
export const hmacSha256: WebhookScheme = {
  name: "hmac-sha256",
  title: "HMAC-SHA256 of the body (GitHub style)",
  covers: "body",
  authenticatesBody: true,
  headers: [header],
  eventId: "body",
  checkSecret: commonSecretFault,
  verify: (rawBody, headers, secrets, nowMs) => {
    const value = headerValues(headers, header).join(",");
    if (value.trim() === "") return { ok: false, reason: "missing-header" };
    if (value.length > MAX_HEADER_CHARACTERS) return { ok: false, reason: "malformed-header" };
    const signatures = value
      .split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry.startsWith("sha256="))
      .map((entry) => entry.slice("sha256=".length));
    if (signatures.length === 0) return { ok: false, reason: "malformed-header" };
    return checkHmac({ message: [rawBody], signatures }, rule, secrets, nowMs);
  },
  authentication:
    "Good: an HMAC-SHA256 over the raw body; no time is signed, so a captured delivery verifies until the secret changes.",
  deduplication: "Strong: the event id is in the signed body, so a replay is recognised however old it is.",
};
