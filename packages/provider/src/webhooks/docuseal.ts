import type { WebhookScheme } from "./scheme.js";
import {
  faultOf,
  hmacVerifier,
  isTimestamp,
  malformed,
  prefixedSecretFault,
  singleHeader,
  TOLERANCE_MS,
} from "./signature.js";
import { vendorFormat } from "./vendor-format.js";

const header = "x-docuseal-signature";

/** `X-Docuseal-Signature: <unix seconds>.<hex>`: HMAC-SHA256 with the whole `whsec_` text over `t.body`. */
export const docuseal: WebhookScheme = {
  name: "docuseal",
  title: "DocuSeal",
  covers: "time-and-body",
  authenticatesBody: true,
  toleranceMs: TOLERANCE_MS,
  headers: [header],
  eventId: "derived",
  checkSecret: prefixedSecretFault,
  ...hmacVerifier(
    (rawBody, headers) => {
      const sent = singleHeader(headers, header);
      if (sent.kind !== "value") return faultOf(header, sent);
      const dot = sent.value.indexOf(".");
      const timestamp = sent.value.slice(0, Math.max(dot, 0));
      if (!isTimestamp(timestamp)) return malformed(header, "does not begin with plain Unix seconds and a dot");
      const signatures = [sent.value.slice(dot + 1)];
      return { message: [timestamp, ".", rawBody], signatures, signedIn: header, timestamp };
    },
    { encoding: "hex", key: (secret) => secret, toleranceMs: TOLERANCE_MS },
  ),
  format: vendorFormat({
    scheme: "docuseal",
    typeAt: "event_type",
    idFrom: ["event_type", "timestamp", "data.id"],
    // `data` is a signer in form events and the submission itself in the others.
    refAt: (type) => (type.startsWith("form.") ? "data.submission_id" : "data.id"),
    timeAt: "timestamp",
    statuses: {
      "form.viewed": "viewed",
      "form.started": null,
      "form.completed": "partially-signed",
      "form.declined": "declined",
      // Made, and maybe mailed: there is no event for that.
      "submission.created": null,
      "submission.completed": "completed",
      "submission.expired": "expired",
      // Archiving is how this provider voids.
      "submission.archived": "withdrawn",
    },
  }),
  authentication: "Strong: an HMAC-SHA256 over time and raw body; a captured delivery is refused after five minutes.",
  deduplication: "Weak: no event id is sent; it is derived from type, time and object, so the event is only a hint.",
};
