import type { DeliveryHeaders, VerifyResult, WebhookSecret } from "../port.js";
import { usableReference } from "../reference.js";
import type { WebhookScheme } from "./scheme.js";
import {
  checkHmac,
  commonSecretFault,
  type HmacRule,
  headerValues,
  isTimestamp,
  MAX_HEADER_CHARACTERS,
  MAX_SIGNATURES,
  refusalOf,
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
function firstOf(headers: DeliveryHeaders, prefixes: readonly string[], what: string): SingleHeader {
  const found = prefixes.map((prefix) => singleHeader(headers, `${prefix}${what}`));
  return found.find(({ kind }) => kind !== "absent") ?? { kind: "absent" };
}

/** The signatures of version 1 of a space-separated list; `v1a` (a public key's) and unknown versions are ignored. */
function signaturesOf(headers: DeliveryHeaders, prefixes: readonly string[]): string[] | undefined {
  const lists = prefixes.map((prefix) => headerValues(headers, `${prefix}signature`).join(" "));
  const list = lists.find((text) => text.trim() !== "");
  if (list === undefined) return undefined;
  if (list.length > MAX_HEADER_CHARACTERS) return [];
  return list
    .split(/\s+/)
    .filter((entry) => entry.startsWith("v1,"))
    .slice(0, MAX_SIGNATURES)
    .map((entry) => entry.slice("v1,".length).replace(/,$/, ""));
}

function verifyStandard(
  prefixes: readonly string[],
  rawBody: Uint8Array,
  headers: DeliveryHeaders,
  secrets: readonly WebhookSecret[],
  nowMs: number,
): VerifyResult {
  const id = firstOf(headers, prefixes, "id");
  if (id.kind !== "value") return refusalOf(id);
  const time = firstOf(headers, prefixes, "timestamp");
  if (time.kind !== "value") return refusalOf(time);
  const signatures = signaturesOf(headers, prefixes);
  if (signatures === undefined) return { ok: false, reason: "missing-header" };
  if (usableReference(id.value) === undefined || !isTimestamp(time.value) || signatures.length === 0) {
    return { ok: false, reason: "malformed-header" };
  }
  const message = [`${id.value}.${time.value}.`, rawBody];
  return checkHmac({ message, signatures, timestamp: time.value }, rule, secrets, nowMs);
}

function standardScheme(names: { name: string; title: string }, prefixes: readonly string[]): WebhookScheme {
  return {
    ...names,
    covers: "id-time-and-body",
    authenticatesBody: true,
    toleranceMs: TOLERANCE_MS,
    headers: prefixes.flatMap((prefix) => ["id", "timestamp", "signature"].map((what) => `${prefix}${what}`)),
    eventId: "signed-header",
    checkSecret: standardSecretFault,
    verify: (...delivery) => verifyStandard(prefixes, ...delivery),
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
