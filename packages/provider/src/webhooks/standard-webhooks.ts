import type { DeliveryHeaders } from "../port.js";
import { usableReference } from "../reference.js";
import type { WebhookScheme } from "./scheme.js";
import {
  commonSecretFault,
  faultOf,
  type HmacRule,
  headerValues,
  hmacVerifier,
  isTimestamp,
  MAX_HEADER_CHARACTERS,
  MAX_SIGNATURES,
  malformed,
  missing,
  type ReadClaim,
  type SingleHeader,
  singleHeader,
  TOLERANCE_MS,
} from "./signature.js";

const rule: HmacRule = { encoding: "base64", key: standardKey, toleranceMs: TOLERANCE_MS };

/** The key: what follows `whsec_` (which may be missing), as base64 of 24 to 64 bytes; undefined for anything else. */
function standardKey(secret: string): Uint8Array | undefined {
  const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  // Buffer.from(…, "base64") skips what is not base64 without a word: check the form first.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1) return undefined;
  const key = Buffer.from(text, "base64");
  return key.length >= 24 && key.length <= 64 ? key : undefined;
}

function standardSecretFault(secret: string): string | undefined {
  const fault = commonSecretFault(secret);
  if (fault !== undefined) return fault;
  return standardKey(secret) === undefined ? "what follows whsec_ is not base64 of 24 to 64 bytes" : undefined;
}

/** The first name that comes with a value, so that `svix-…` wins over `webhook-…`, as in the senders' own library. */
function firstOf(
  headers: DeliveryHeaders,
  prefixes: readonly string[],
  what: string,
): SingleHeader & { readonly header: string } {
  const all = prefixes.map((prefix) => {
    const header = `${prefix}${what}`;
    return { ...singleHeader(headers, header), header };
  });
  return all.find(({ kind }) => kind !== "absent") ?? { kind: "absent", header: `${prefixes[0] ?? ""}${what}` };
}

/** The signatures of version 1 of a space-separated list; `v1a` (a public key's) and unknown versions are ignored. */
function versionOne(list: string): string[] {
  return list
    .split(/\s+/)
    .filter((entry) => entry.startsWith("v1,"))
    .slice(0, MAX_SIGNATURES)
    .map((entry) => entry.slice("v1,".length).replace(/,$/, ""));
}

const readStandard =
  (prefixes: readonly string[]): ReadClaim =>
  (rawBody, headers) => {
    const id = firstOf(headers, prefixes, "id");
    if (id.kind !== "value") return faultOf(id.header, id);
    const time = firstOf(headers, prefixes, "timestamp");
    if (time.kind !== "value") return faultOf(time.header, time);
    const names = prefixes.map((prefix) => `${prefix}signature`);
    const signedIn = names.find((name) => headerValues(headers, name).some((value) => value.trim() !== ""));
    if (signedIn === undefined) return missing(names[0] ?? "");
    const list = headerValues(headers, signedIn).join(" ");
    if (usableReference(id.value) === undefined) {
      return malformed(id.header, "is not 1 to 255 printable characters without spaces");
    }
    if (!isTimestamp(time.value)) return malformed(time.header, "is not plain Unix seconds");
    if (list.length > MAX_HEADER_CHARACTERS) return malformed(signedIn, "is endless");
    const signatures = versionOne(list);
    if (signatures.length === 0) return malformed(signedIn, "has no signature of version v1");
    return { message: [`${id.value}.${time.value}.`, rawBody], signatures, signedIn, timestamp: time.value };
  };

function standardScheme(names: { name: string; title: string }, prefixes: readonly string[]): WebhookScheme {
  return {
    ...names,
    covers: "id-time-and-body",
    authenticatesBody: true,
    toleranceMs: TOLERANCE_MS,
    headers: prefixes.flatMap((prefix) => ["id", "timestamp", "signature"].map((what) => `${prefix}${what}`)),
    eventId: "signed-header",
    checkSecret: standardSecretFault,
    ...hmacVerifier(readStandard(prefixes), rule),
    signedId: (headers) => {
      const id = firstOf(headers, prefixes, "id");
      return id.kind === "value" ? usableReference(id.value) : undefined;
    },
    authentication:
      "Strong: an HMAC-SHA256 over id, time and raw body; a captured delivery is refused after five minutes.",
    deduplication: "Strong: the event id is signed and stays the same on every attempt.",
  };
}

/** `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64>`: HMAC-SHA256 over `id.timestamp.body`. */
export const standardWebhooks: WebhookScheme = standardScheme(
  { name: "standard-webhooks", title: "Standard Webhooks" },
  ["webhook-"],
);

/** The same with `svix-` names; the `webhook-` names are taken too, as its own library does. */
export const svix: WebhookScheme = standardScheme({ name: "svix", title: "Svix" }, ["svix-", "webhook-"]);
