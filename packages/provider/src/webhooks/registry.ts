import { sha256 } from "@countersign/runtime";
import type { DeliveryHeaders, Uninterpretable, WebhookContract } from "../port.js";
import { storableText } from "../reference.js";
import { derivedIdOf } from "./derived-id.js";
import { documenso } from "./documenso.js";
import { docuseal } from "./docuseal.js";
import { docusign } from "./docusign.js";
import { dropboxSign } from "./dropbox-sign.js";
import { elchi } from "./elchi.js";
import { hmacSha256 } from "./hmac-sha256.js";
import type { EventFormat, ReadEvent, WebhookScheme } from "./scheme.js";
import { standardWebhooks, svix } from "./standard-webhooks.js";
import { stripe } from "./stripe.js";

const all: readonly WebhookScheme[] = [
  elchi,
  stripe,
  standardWebhooks,
  svix,
  hmacSha256,
  docusign,
  dropboxSign,
  docuseal,
  documenso,
];

/** Every scheme that an endpoint may name, by that name. */
export const webhookSchemes: ReadonlyMap<string, WebhookScheme> = new Map(all.map((scheme) => [scheme.name, scheme]));

/** The scheme of that name, or undefined. */
export function webhookScheme(name: string): WebhookScheme | undefined {
  return webhookSchemes.get(name);
}

/** Every scheme with the adapter's form of events, or with the vendor's own where the scheme has one. */
export function webhookContracts(format: EventFormat): Record<string, WebhookContract> {
  return Object.fromEntries(all.map((scheme) => [scheme.name, contractOf(scheme, scheme.format ?? format)]));
}

function contractOf(scheme: WebhookScheme, format: EventFormat): WebhookContract {
  return {
    scheme,
    verify: (...delivery) => scheme.verify(...delivery),
    parse: (rawBody, headers, storedId) => {
      const read = believable(scheme, format.parse(rawBody, headers));
      const identified = storable(identify(scheme, read, headers, storedId));
      if ("uninterpretable" in identified) return identified;
      const { eventId } = identified;
      if (eventId !== undefined) return { ...identified, eventId };
      return { ...identified, eventId: derivedFromEvent(scheme, identified, rawBody), weakId: true };
    },
  };
}

/**
 * An event of a sender that should have named it and didn't: derived from what it says (type, request and, where it says
 * one, the time), so that the same story written anew is the same event.
 */
function derivedFromEvent(scheme: WebhookScheme, event: ReadEvent, rawBody: Uint8Array): string {
  const when = event.occurredAt ?? sha256(rawBody).toString("hex");
  return derivedIdOf([scheme.name, event.type, event.ref, when]);
}

/** The id comes from what was signed; a differing one from elsewhere is reported, never used. */
function identify(
  scheme: WebhookScheme,
  read: ReadEvent | Uninterpretable,
  headers: DeliveryHeaders,
  storedId: string | undefined,
): ReadEvent | Uninterpretable {
  if (scheme.eventId === "signed-header") {
    const eventId = scheme.signedId?.(headers) ?? storedId ?? read.eventId;
    return eventId === undefined ? read : { ...read, eventId };
  }
  if (read.eventId === undefined) return read;
  const headerId = scheme.unsignedId?.(headers);
  return headerId === undefined || headerId === read.eventId ? read : { ...read, headerIdDiffers: true };
}

/** Of a body that nothing authenticates even our own metadata is a copy: the event is a hint and names no operation. */
function believable(scheme: WebhookScheme, read: ReadEvent | Uninterpretable): ReadEvent | Uninterpretable {
  if (scheme.authenticatesBody || "uninterpretable" in read) return read;
  const { operationId: _operation, tenantId: _tenant, ...hint } = read;
  return { ...hint, weakId: true };
}

/** What can't be stored as text is no event: `shape`, with the members that can be. */
function storable(read: ReadEvent | Uninterpretable): ReadEvent | Uninterpretable {
  const texts =
    "uninterpretable" in read
      ? [read.eventId, read.type]
      : [read.eventId, read.type, read.ref, read.occurredAt, read.operationId, read.tenantId];
  if (texts.every((text) => text === undefined || storableText(text))) return read;
  return {
    uninterpretable: true,
    reason: "shape",
    ...(storableText(read.eventId) ? { eventId: read.eventId } : {}),
    ...(read.weakId === undefined ? {} : { weakId: read.weakId }),
    ...(read.headerIdDiffers === true ? { headerIdDiffers: true } : {}),
    ...(storableText(read.type) ? { type: read.type } : {}),
  };
}
