import type { ProviderStatus } from "../port.js";
import { storableText, usableReference } from "../reference.js";
import { isJsonObject, type JsonObject, parseStrictObject } from "../strict-json.js";
import { derivedIdOf } from "./derived-id.js";
import type { EventFormat } from "./scheme.js";

/** A vendor's events as data. Places are member names joined by dots. */
export interface VendorEvents {
  /** Part of what the derived id is made of. */
  readonly scheme: string;
  /** Bytes to the event; absent: the body is the JSON object itself. */
  read?(rawBody: Uint8Array): JsonObject | undefined;
  readonly typeAt: string;
  /** What the derived id is made of, in order; a place with `?` at its end may be missing. */
  readonly idFrom: readonly string[];
  /** Where events of a type name the request. */
  refAt(type: string): string;
  readonly timeAt: string;
  /** Documented types; null: it says nothing of the signing status. */
  readonly statuses: Readonly<Record<string, ProviderStatus | null>>;
}

/**
 * Reads a vendor's own events, which carry no id: it is derived, the event flagged weak. Metadata is never read: an event
 * of these vendors is a hint that somebody should look, not evidence.
 */
export function vendorFormat(events: VendorEvents): EventFormat {
  const read = events.read ?? parseStrictObject;
  const statuses = new Map(Object.entries(events.statuses));
  return {
    derivedFrom: events.idFrom,
    parse: (rawBody) => {
      const body = read(rawBody);
      if (body === undefined) return { uninterpretable: true, reason: "not-json" };
      const type = valueAt(body, events.typeAt);
      if (!storableText(type)) return { uninterpretable: true, reason: "shape" };
      const eventId = derivedId(events, body);
      const known = { type, ...(eventId === undefined ? {} : { eventId, weakId: true }) };
      const status = statuses.get(type);
      if (status === undefined) return { uninterpretable: true, reason: "unknown-type", ...known };
      const ref = valueAt(body, events.refAt(type));
      if (ref === undefined || ref === null) return { uninterpretable: true, reason: "no-reference", ...known };
      const usable = usableReference(Number.isSafeInteger(ref) ? String(ref) : ref);
      if (usable === undefined) return { uninterpretable: true, reason: "shape", ...known };
      const time = occurredAt(valueAt(body, events.timeAt));
      return {
        ...known,
        ref: usable,
        ...(status === null ? {} : { status }),
        ...(time === undefined ? {} : { occurredAt: time }),
      };
    },
  };
}

/** Made of the scheme's name and the fields; undefined where one is missing. */
function derivedId({ scheme, idFrom }: VendorEvents, body: JsonObject): string | undefined {
  const values: unknown[] = [scheme];
  for (const place of idFrom) {
    const optional = place.endsWith("?");
    const value = valueAt(body, optional ? place.slice(0, -1) : place);
    if (storableText(value) || Number.isSafeInteger(value)) values.push(value);
    else if (optional && (value === undefined || value === null)) values.push(null);
    else return undefined;
  }
  return derivedIdOf(values);
}

function valueAt(body: JsonObject, place: string): unknown {
  return place.split(".").reduce<unknown>((value, name) => {
    return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }, body);
}

/** ISO 8601 as sent, or Unix seconds turned into it. */
function occurredAt(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (/^[0-9]{1,11}$/.test(value)) return new Date(Number(value) * 1000).toISOString();
  return storableText(value) ? value : undefined;
}
