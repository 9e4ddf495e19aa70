import { operationId } from "@countersign/runtime";
import type { SigningEvent, Uninterpretable, WebhookContract } from "../port.js";

/** Only what its sender has signed and named may be believed as it stands. `weakId`: its id is derived. Pure. */
export const isHint = (contract: WebhookContract, weakId: boolean): boolean =>
  weakId || !contract.scheme.authenticatesBody;

/**
 * The operation that an event's metadata names, where it also names this tenant: every request of ours carries both, so
 * anything else is somebody else's request, or a copy of our metadata, and never evidence. Pure.
 */
export function ownOperation(event: SigningEvent | Uninterpretable, tenantId: string): { operationId?: string } {
  if (!("ref" in event) || event.tenantId !== tenantId) return {};
  const id = operationId.safeParse(event.operationId);
  return id.success ? { operationId: id.data } : {};
}
