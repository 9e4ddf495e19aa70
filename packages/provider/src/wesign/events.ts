import type { ProviderStatus } from "../port.js";
import { usableReference } from "../reference.js";
import { isJsonObject, parseStrictObject } from "../strict-json.js";
import type { EventFormat } from "../webhooks/scheme.js";
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

/** WeSign's form of events: `{id, type, created_at, data}`. A body without an id has none here; the scheme may know one. */
export const weSignFormat: EventFormat = {
  parse: (rawBody) => {
    const body = parseStrictObject(rawBody);
    if (body === undefined) return { uninterpretable: true, reason: "not-json" };
    const known = typeof body.id === "string" && body.id !== "" ? { eventId: body.id } : {};
    const type = usableReference(body.type);
    if (type === undefined) return { uninterpretable: true, reason: "shape", ...known };
    const status = statusByType.get(type);
    if (status === undefined) return { uninterpretable: true, reason: "unknown-type", type, ...known };
    if (!isJsonObject(body.data)) return { uninterpretable: true, reason: "shape", type, ...known };
    const named = [body.data.signing_request_id, body.data.document_id].find((value) => isNamed(value));
    if (named === undefined) return { uninterpretable: true, reason: "no-reference", type, ...known };
    const ref = usableReference(named);
    if (ref === undefined) return { uninterpretable: true, reason: "shape", type, ...known };
    return {
      ...known,
      type,
      ref,
      ...(status === null ? {} : { status }),
      ...(typeof body.created_at === "string" ? { occurredAt: body.created_at } : {}),
      ...ownIds(body.data),
    };
  },
};

const isNamed = (value: unknown): boolean => value !== undefined && value !== null && value !== "";
