import type { WebhookScheme } from "./scheme.js";
import { commonSecretFault, faultOf, hmacVerifier, MAX_SIGNATURES, missing, singleHeader } from "./signature.js";
import { vendorFormat } from "./vendor-format.js";

const firstHeader = "x-docusign-signature-1";
/** One per active key of the sender, counted from 1. */
const signatureHeaders = Array.from({ length: MAX_SIGNATURES }, (_, index) => `x-docusign-signature-${index + 1}`);

/** `X-DocuSign-Signature-1`, `-2`, …: base64 of HMAC-SHA256 over the raw body, one per active key; any may match. */
export const docusign: WebhookScheme = {
  name: "docusign",
  title: "DocuSign Connect",
  covers: "body",
  authenticatesBody: true,
  headers: signatureHeaders,
  eventId: "derived",
  checkSecret: commonSecretFault,
  ...hmacVerifier(
    (rawBody, headers) => {
      const sent = signatureHeaders
        .map((name) => ({ name, ...singleHeader(headers, name) }))
        .filter(({ kind }) => kind !== "absent");
      const signedIn = sent[0]?.name;
      if (signedIn === undefined) return missing(firstHeader);
      const signatures = sent.flatMap((header) => (header.kind === "value" ? [header.value] : []));
      if (signatures.length === 0) return faultOf(signedIn, { kind: "unusable" });
      return { message: [rawBody], signatures, signedIn };
    },
    { encoding: "base64", key: (secret) => secret },
  ),
  format: vendorFormat({
    scheme: "docusign",
    typeAt: "event",
    idFrom: ["event", "data.envelopeId", "generatedDateTime"],
    refAt: () => "data.envelopeId",
    timeAt: "generatedDateTime",
    statuses: {
      "envelope-sent": "sent",
      "envelope-completed": "completed",
      "recipient-completed": "partially-signed",
      // The next three names follow the pattern of the confirmed ones; the page that lists them was not read.
      "envelope-delivered": "viewed",
      "envelope-declined": "declined",
      "envelope-voided": "withdrawn",
    },
  }),
  authentication:
    "Good: an HMAC-SHA256 over the raw body; no time is signed, so a captured delivery verifies until the key changes.",
  deduplication:
    "Weak: no event id is documented; it is derived from event, envelope and the time in the body, so the event is only a hint.",
};
