import type { ProviderStatus, SigningEvent, Uninterpretable } from "../port.js";
import { usableReference } from "../reference.js";
import { isJsonObject, parseStrictObject } from "../strict-json.js";
import { elchiHeaderId } from "../webhooks/elchi.js";
import { ownIds } from "./answers.js";

/** Known types; null: it says nothing of the signing status. Names of the last three are assumed. */
const statusByType = new Map<string, ProviderStatus | null>([
  ["signing_request.sent", "sent"],
  ["signing_request.viewed", "viewed"],
  ["signing_request.signed", "partially-signed"],
  ["signing_request.completed", "completed"],
  ["signing_request.declined", "declined"],
  ["signing_request.withdrawn", "withdrawn"],
  ["template_instance.staged", "staged"],
  ["signing_request.expired", "expired"],
  ["signing_request.reminded", null],
  ["signing_request.updated", null],
]);

/**
 * A verified delivery in our words. The id is the one in the signed body; the id header is not signed and only
 * compared. Never throws.
 */
export function parseWeSignEvent(
  rawBody: Uint8Array,
  headers: Record<string, string | string[] | undefined>,
): SigningEvent | Uninterpretable {
  const body = parseStrictObject(rawBody);
  if (body === undefined) return { uninterpretable: true, reason: "not-json" };
  const eventId = usableReference(body.id);
  if (eventId === undefined) return { uninterpretable: true, reason: "no-id" };
  const headerId = elchiHeaderId(headers);
  const known = {
    eventId,
    ...(headerId !== undefined && headerId !== eventId ? ({ headerIdDiffers: true } as const) : {}),
  };
  const type = usableReference(body.type);
  if (type === undefined) return { uninterpretable: true, reason: "shape", ...known };
  const status = statusByType.get(type);
  if (status === undefined) return { uninterpretable: true, reason: "unknown-type", type, ...known };
  if (!isJsonObject(body.data)) return { uninterpretable: true, reason: "shape", type, ...known };
  const ref = usableReference(body.data.signing_request_id) ?? usableReference(body.data.document_id);
  if (ref === undefined) return { uninterpretable: true, reason: "no-reference", type, ...known };
  return {
    ...known,
    type,
    ref,
    ...(status === null ? {} : { status }),
    ...(typeof body.created_at === "string" ? { occurredAt: body.created_at } : {}),
    ...ownIds(body.data),
  };
}
