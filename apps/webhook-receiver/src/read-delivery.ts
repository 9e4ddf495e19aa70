import type { Delivery, Endpoint } from "@countersign/ledger";
import type { SigningEvent, Uninterpretable, WebhookContract } from "@countersign/provider";
import { operationId, sha256 } from "@countersign/runtime";

/** Header names in lower case, as Node gives them. */
export type Headers = Record<string, string | string[] | undefined>;

/**
 * A verified delivery as the inbox stores it. Tenant and connection come from the endpoint, never from the body. What
 * can't be interpreted is stored quarantined; without an id of its own it gets one derived from its bytes, which is weak:
 * a sender that changes one byte makes it another event, so it may only hint (`weak-id`).
 */
export function readDelivery(endpoint: Endpoint, contract: WebhookContract, body: Buffer, headers: Headers): Delivery {
  const event = contract.parse(body, headers);
  const weak = event.eventId === undefined || ("weakId" in event && event.weakId === true);
  const quarantine = quarantineReason(event, weak);
  return {
    tenantId: endpoint.tenantId,
    connectionId: endpoint.connectionId,
    endpointId: endpoint.endpointId,
    providerEventId: event.eventId ?? `derived:${sha256(body).toString("hex")}`,
    weakId: weak,
    flagged: event.headerIdDiffers === true,
    ...(event.type === undefined ? {} : { eventType: event.type }),
    ...("ref" in event ? { providerRef: event.ref } : {}),
    ...ownOperation(event, endpoint.tenantId),
    ...(quarantine === undefined ? {} : { quarantine }),
    body,
  };
}

function quarantineReason(event: SigningEvent | Uninterpretable, weak: boolean): string | undefined {
  if ("uninterpretable" in event && event.reason !== "no-id") return event.reason;
  return weak ? "weak-id" : undefined;
}

/**
 * The operation that an event's metadata names, where it also names this tenant: every request of ours carries both, so
 * anything else is somebody else's request, or a copy of our metadata, and never evidence.
 */
export function ownOperation(event: SigningEvent | Uninterpretable, tenantId: string): { operationId?: string } {
  if (!("ref" in event) || event.tenantId !== tenantId) return {};
  const id = operationId.safeParse(event.operationId);
  return id.success ? { operationId: id.data } : {};
}
