import { createHash, timingSafeEqual } from "node:crypto";
import type { WebhookScheme } from "./scheme.js";
import { commonSecretFault, faultOf, singleHeader } from "./signature.js";
import { vendorFormat } from "./vendor-format.js";

const header = "x-documenso-secret";
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** `X-Documenso-Secret: <the secret itself>`: whoever sees one delivery can write any other. */
export const documenso: WebhookScheme = {
  name: "documenso",
  title: "Documenso",
  covers: "nothing",
  authenticatesBody: false,
  headers: [header],
  eventId: "derived",
  checkSecret: (secret) =>
    commonSecretFault(secret) ??
    (/^[\x21-\x7e]+$/.test(secret) ? undefined : "it has characters that a header can't carry"),
  verify: (_rawBody, headers, secrets) => {
    const sent = singleHeader(headers, header);
    // The sender leaves the header empty where no secret is set: that proves nothing, whatever our secret is.
    if (sent.kind !== "value") return { ok: false, reason: faultOf(header, sent).reason };
    const given = digest(sent.value);
    // Digests have one length, so that the time taken says nothing of the secret's.
    const match = secrets.find(({ secret }) => secret !== "" && timingSafeEqual(digest(secret), given));
    return match === undefined
      ? { ok: false, reason: "no-matching-signature" }
      : { ok: true, secretId: match.secretId };
  },
  fault: (_rawBody, headers) => {
    const sent = singleHeader(headers, header);
    return sent.kind === "value" ? undefined : faultOf(header, sent);
  },
  format: vendorFormat({
    scheme: "documenso",
    typeAt: "event",
    // `createdAt` is made anew for every attempt.
    idFrom: ["event", "payload.envelopeId", "payload.updatedAt"],
    refAt: () => "payload.envelopeId",
    timeAt: "payload.updatedAt",
    statuses: {
      DOCUMENT_CREATED: "draft",
      DOCUMENT_SENT: "sent",
      DOCUMENT_OPENED: "viewed",
      DOCUMENT_SIGNED: "partially-signed",
      DOCUMENT_RECIPIENT_COMPLETED: "partially-signed",
      DOCUMENT_COMPLETED: "completed",
      DOCUMENT_REJECTED: "declined",
      DOCUMENT_CANCELLED: "withdrawn",
      DOCUMENT_REMINDER_SENT: null,
      // One signer's link, which can be renewed.
      RECIPIENT_EXPIRED: null,
    },
  }),
  authentication:
    "Poor: the secret itself is in a header and covers nothing, so whoever sees one delivery can forge any other; the provider is asked before anything is believed.",
  deduplication:
    "Weak: no event id is sent; it is derived from event, envelope and its time of change, so the event is only a hint.",
};
