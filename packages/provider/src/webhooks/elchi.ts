import type { WebhookScheme } from "./scheme.js";
import { headerValues, prefixedSecretFault, TOLERANCE_MS } from "./signature.js";
import { timestampedHeader } from "./stripe.js";

/** `Elchi-Signature: t=,v1=`: Stripe's scheme with the header renamed, and a time window both ways. */
export const elchi: WebhookScheme = {
  name: "elchi",
  title: "Elchi / EAuth",
  covers: "time-and-body",
  authenticatesBody: true,
  toleranceMs: TOLERANCE_MS,
  headers: ["elchi-signature"],
  eventId: "body",
  checkSecret: prefixedSecretFault,
  ...timestampedHeader("elchi-signature"),
  // Not covered by the signature.
  unsignedId: (headers) => {
    const values = headerValues(headers, "elchi-event-id");
    return values.length === 0 ? undefined : values.join(",").trim();
  },
  authentication: "Strong: an HMAC-SHA256 over time and raw body; a captured delivery is refused after five minutes.",
  deduplication:
    "Strong: the event id is in the signed body and stays the same on every attempt; the id header is not signed and only compared.",
};
