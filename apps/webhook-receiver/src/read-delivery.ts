import type { Delivery, Endpoint } from "@countersign/ledger";
import {
  isHint,
  ownOperation,
  type SigningEvent,
  type Uninterpretable,
  type WebhookContract,
} from "@countersign/provider";
import { sha256 } from "@countersign/runtime";

/** Header names in lower case, as Node gives them. */
export type Headers = Record<string, string | string[] | undefined>;

/** One event of a delivery; `index` where the delivery is an array of several. */
export interface EventBytes {
  readonly body: Uint8Array;
  readonly index?: number;
}

/**
 * One event of a verified delivery as the inbox stores it. Tenant and connection come from the endpoint, never from the
 * body. What can't be interpreted is stored quarantined. An event without an id of its own gets a derived one, which is
 * weak: it may only hint, like one whose body nothing authenticates.
 */
export function readDelivery(
  endpoint: Endpoint,
  contract: WebhookContract,
  { body, index }: EventBytes,
  headers: Headers,
  secretId: string,
): Delivery {
  const event = contract.parse(body, headers);
  const weak = event.eventId === undefined || event.weakId === true;
  return {
    tenantId: endpoint.tenantId,
    connectionId: endpoint.connectionId,
    endpointId: endpoint.endpointId,
    secretId,
    providerEventId: idOf(event, contract, body, index),
    weakId: weak,
    hint: isHint(contract, weak),
    flagged: event.headerIdDiffers === true,
    ...(event.type === undefined ? {} : { eventType: event.type }),
    ...("ref" in event ? { providerRef: event.ref } : {}),
    ...ownOperation(event, endpoint.tenantId),
    ...("uninterpretable" in event ? { quarantine: event.reason } : {}),
    body,
  };
}

/** An id in a signed header names the delivery: each event of an array gets its place in it. */
function idOf(
  event: SigningEvent | Uninterpretable,
  { scheme }: WebhookContract,
  body: Uint8Array,
  index: number | undefined,
): string {
  if (event.eventId === undefined) return `derived:${sha256(body).toString("hex")}`;
  return index !== undefined && scheme.eventId === "signed-header" ? `${event.eventId}#${index}` : event.eventId;
}
