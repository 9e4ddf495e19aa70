import { isJsonObject, type JsonObject, parseStrictObject } from "../strict-json.js";
import { multipartField } from "./multipart-field.js";
import type { ProofFault, WebhookScheme } from "./scheme.js";
import { commonSecretFault, hmacVerifier } from "./signature.js";
import { vendorFormat } from "./vendor-format.js";

const unreadable = (fault: string): ProofFault => ({ reason: "unreadable-body", fault });

/** The event: the field `json` of a multipart body, or the body itself where that is JSON. */
function readBody(rawBody: Uint8Array): JsonObject | undefined {
  return parseStrictObject(multipartField(rawBody, "json") ?? rawBody);
}

/**
 * `event.event_hash` inside the body: hex of HMAC-SHA256 with the API key over `event_time` and `event_type`. Everything
 * else in the body is covered by nothing, and the time is the event's, not the delivery's: there is no window to check.
 */
export const dropboxSign: WebhookScheme = {
  name: "dropbox-sign",
  title: "Dropbox Sign",
  covers: "event-time-and-type",
  authenticatesBody: false,
  headers: [],
  eventId: "derived",
  acknowledgement: { text: "Hello API Event Received", contentType: "text/plain" },
  checkSecret: commonSecretFault,
  ...hmacVerifier(
    (rawBody) => {
      const event = readBody(rawBody)?.event;
      if (!isJsonObject(event)) return unreadable("has no event in JSON, as it is or in the field json");
      const { event_time: time, event_type: type, event_hash: hash } = event;
      if (typeof time !== "string" || typeof type !== "string" || typeof hash !== "string") {
        return unreadable("has an event without event_time, event_type or event_hash");
      }
      return { message: [time, type], signatures: [hash] };
    },
    { encoding: "hex", key: (secret) => secret },
  ),
  format: vendorFormat({
    scheme: "dropbox-sign",
    read: readBody,
    typeAt: "event.event_type",
    idFrom: [
      "event.event_time",
      "event.event_type",
      "signature_request.signature_request_id",
      "event.event_metadata.related_signature_id?",
    ],
    refAt: () => "signature_request.signature_request_id",
    timeAt: "event.event_time",
    statuses: {
      signature_request_sent: "sent",
      signature_request_viewed: "viewed",
      signature_request_signed: "partially-signed",
      signature_request_all_signed: "completed",
      signature_request_declined: "declined",
      signature_request_canceled: "withdrawn",
      signature_request_expired: "expired",
      signature_request_downloadable: null,
      signature_request_invalid: null,
      signature_request_email_bounce: null,
      signature_request_remind: null,
      signature_request_reassigned: null,
    },
  }),
  authentication:
    "Poor: an HMAC-SHA256 over the event's time and type only, so one captured hash fits any other body; the provider is asked before anything is believed.",
  deduplication:
    "Weak: no event id is sent; it is derived from time, type, request and signature, so the event is only a hint.",
};
