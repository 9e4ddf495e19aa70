import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WebhookContract } from "../port.js";
import { weSignFormat } from "../wesign/events.js";
import { webhookContracts, webhookSchemes } from "./registry.js";
import type { EventFormat } from "./scheme.js";

const contracts = webhookContracts(weSignFormat);
const contract = (name: string, format?: EventFormat): WebhookContract => {
  const found = (format === undefined ? contracts : webhookContracts(format))[name];
  if (found === undefined) throw new Error(`no contract ${name}`);
  return found;
};
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const event = (more: object = {}) =>
  json({ id: "evt_1", type: "signing_request.sent", data: { signing_request_id: "sr_1" }, ...more });
const derived = (...values: unknown[]): string =>
  `derived:${createHash("sha256").update(JSON.stringify(values)).digest("hex")}`;

it("an adapter offers every scheme, each with its data", () => {
  expect(Object.keys(contracts)).toEqual([...webhookSchemes.keys()]);
  for (const [name, { scheme }] of Object.entries(contracts)) expect(scheme).toBe(webhookSchemes.get(name));
});

describe("the id comes from what was signed", () => {
  it.each(["standard-webhooks", "svix"])("%s: the signed header, whatever the body says", (name) => {
    const headers = { "webhook-id": "msg_1" };
    expect(contract(name).parse(event(), headers)).toMatchObject({ eventId: "msg_1", ref: "sr_1" });
    expect(contract(name).parse(event(), headers)).not.toHaveProperty("headerIdDiffers");
    expect(contract(name).parse(event({ id: undefined }), headers)).toMatchObject({ eventId: "msg_1", ref: "sr_1" });
    expect(contract(name).parse(Buffer.from("not json"), headers)).toEqual({
      uninterpretable: true,
      reason: "not-json",
      eventId: "msg_1",
    });
  });

  it.each(["standard-webhooks", "svix"])("%s: without its headers, the id under which it was stored", (name) => {
    expect(contract(name).parse(event({ id: undefined }), {}, "msg_1")).toMatchObject({
      eventId: "msg_1",
      ref: "sr_1",
    });
    expect(contract(name).parse(event({ id: undefined }), {})).toMatchObject({ weakId: true, ref: "sr_1" });
  });

  it.each(["elchi", "stripe", "hmac-sha256"])("%s: the body, and never a header", (name) => {
    const headers = { "webhook-id": "msg_1", "elchi-event-id": "evt_1", "x-github-delivery": "d_1" };
    expect(contract(name).parse(event(), headers, "stored")).toMatchObject({ eventId: "evt_1" });
    const nameless = contract(name).parse(event({ id: undefined }), headers, "stored");
    expect(nameless).toMatchObject({
      weakId: true,
      ref: "sr_1",
      eventId: expect.stringMatching(/^derived:[0-9a-f]{64}$/),
    });
  });

  it("elchi: another id in the unsigned header is reported, also of what can't be interpreted", () => {
    const headers = { "Elchi-Event-Id": "evt_2" };
    for (const body of [event(), event({ type: "signing_request.exploded" }), event({ data: 5 })]) {
      expect(contract("elchi").parse(body, headers)).toMatchObject({ eventId: "evt_1", headerIdDiffers: true });
    }
  });
});

describe("vendors without event ids: derived from documented fields, weak", () => {
  it("DocuSign", () => {
    const body = {
      event: "envelope-completed",
      generatedDateTime: "2026-11-30T12:00:00Z",
      data: { envelopeId: "env-1" },
    };
    expect(contract("docusign").parse(json(body), {})).toEqual({
      eventId: derived("docusign", "envelope-completed", "env-1", "2026-11-30T12:00:00Z"),
      weakId: true,
      type: "envelope-completed",
      ref: "env-1",
      status: "completed",
      occurredAt: "2026-11-30T12:00:00Z",
    });
  });

  const dropbox = (type: string, metadata: object = {}) => ({
    event: { event_time: "1348177752", event_type: type, event_hash: "h", ...metadata },
    signature_request: { signature_request_id: "req-1", metadata: { operation_id: "op-1", tenant: "acme" } },
  });
  it("Dropbox Sign: and its metadata, which anybody could write, is not read", () => {
    const signed = dropbox("signature_request_signed", { event_metadata: { related_signature_id: "sig-1" } });
    expect(contract("dropbox-sign").parse(json(signed), {})).toEqual({
      eventId: derived("dropbox-sign", "1348177752", "signature_request_signed", "req-1", "sig-1"),
      weakId: true,
      type: "signature_request_signed",
      ref: "req-1",
      status: "partially-signed",
      occurredAt: "2012-09-20T21:49:12.000Z",
    });
    expect(contract("dropbox-sign").parse(json(dropbox("signature_request_sent")), {})).toMatchObject({
      eventId: derived("dropbox-sign", "1348177752", "signature_request_sent", "req-1", null),
    });
  });

  it("Dropbox Sign: the multipart form and plain JSON are the same event, with and without the header", async () => {
    const form = new FormData();
    form.set("json", JSON.stringify(dropbox("signature_request_all_signed")));
    const response = new Response(form);
    const headers = { "content-type": response.headers.get("content-type") ?? "" };
    const bytes = new Uint8Array(await response.arrayBuffer());
    const plain = contract("dropbox-sign").parse(json(dropbox("signature_request_all_signed")), {});
    expect(plain).toMatchObject({ status: "completed" });
    expect(contract("dropbox-sign").parse(bytes, headers)).toEqual(plain);
    expect(contract("dropbox-sign").parse(bytes, {})).toEqual(plain);
  });

  it("DocuSeal: a form event names its submission, not its signer", () => {
    const form = { event_type: "form.viewed", timestamp: "2026-11-30T12:00:00Z", data: { id: 7, submission_id: 42 } };
    expect(contract("docuseal").parse(json(form), {})).toMatchObject({
      eventId: derived("docuseal", "form.viewed", "2026-11-30T12:00:00Z", 7),
      ref: "42",
      status: "viewed",
    });
    const whole = { event_type: "submission.expired", timestamp: "2026-11-30T12:00:00Z", data: { id: 42 } };
    expect(contract("docuseal").parse(json(whole), {})).toMatchObject({ ref: "42", status: "expired", weakId: true });
    const lost = { event_type: "form.viewed", timestamp: "2026-11-30T12:00:00Z", data: { id: 7 } };
    expect(contract("docuseal").parse(json(lost), {})).toMatchObject({ uninterpretable: true, reason: "no-reference" });
  });

  const documenso = (more: object = {}) => ({
    event: "DOCUMENT_REJECTED",
    payload: { id: 10, envelopeId: "envelope_1", updatedAt: "2024-04-22T11:48:07.569Z" },
    createdAt: "2024-04-22T11:48:07.945Z",
    ...more,
  });
  it("Documenso: the time of the attempt, which changes on every retry, is no part of the id", () => {
    const first = contract("documenso").parse(json(documenso()), {});
    expect(first).toMatchObject({
      eventId: derived("documenso", "DOCUMENT_REJECTED", "envelope_1", "2024-04-22T11:48:07.569Z"),
      ref: "envelope_1",
      status: "declined",
      weakId: true,
    });
    const retry = contract("documenso").parse(json(documenso({ createdAt: "2024-04-22T11:59:00.000Z" })), {});
    expect(retry).toEqual(first);
  });

  it("an unknown type keeps its derived id, flagged weak", () => {
    expect(contract("documenso").parse(json(documenso({ event: "DOCUMENT_EXPLODED" })), {})).toEqual({
      uninterpretable: true,
      reason: "unknown-type",
      type: "DOCUMENT_EXPLODED",
      eventId: derived("documenso", "DOCUMENT_EXPLODED", "envelope_1", "2024-04-22T11:48:07.569Z"),
      weakId: true,
    });
    expect(contract("documenso").parse(json(documenso({ event: "constructor" })), {})).toMatchObject({
      reason: "unknown-type",
    });
  });

  it("without a field that the id is made of, it is made of type, request and bytes", () => {
    const parsed = (more: object) =>
      contract("documenso").parse(json(documenso({ payload: { envelopeId: "envelope_1" }, ...more })), {});
    expect(parsed({})).toMatchObject({ weakId: true, ref: "envelope_1" });
    expect(parsed({ more: 1 })).not.toMatchObject({ eventId: parsed({}).eventId });
    expect(parsed({})).toEqual(parsed({}));
  });
});

describe("ids, types and references that PostgreSQL couldn't store are no event", () => {
  const reads = (more: object): EventFormat => ({
    parse: () => ({ eventId: "evt_1", type: "t", ref: "r", ...more }),
  });
  it.each([
    ["a NUL in the id", { eventId: "evt\0" }, { type: "t" }],
    ["a line break in the type", { type: "t\n" }, { eventId: "evt_1" }],
    ["an endless reference", { ref: "r".repeat(256) }, { eventId: "evt_1", type: "t" }],
    ["an empty reference", { ref: "" }, { eventId: "evt_1", type: "t" }],
    ["half a character in the tenant", { tenantId: "\ud800" }, { eventId: "evt_1", type: "t" }],
  ])("%s", (_, more, kept) => {
    expect(contract("elchi", reads(more)).parse(Buffer.of(), {})).toEqual({
      uninterpretable: true,
      reason: "shape",
      ...kept,
    });
  });

  it("255 characters of any script are stored", () => {
    const eventId = "\u00e9".repeat(255);
    expect(contract("elchi", reads({ eventId })).parse(Buffer.of(), {})).toMatchObject({ eventId });
  });
});

it("no bytes and no headers make any contract throw", () => {
  const bodies = fc.oneof(
    fc.uint8Array(),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .string()
      .map((text) => Buffer.from(`--b\r\nContent-Disposition: form-data; name="json"\r\n\r\n${text}\r\n--b--`)),
  );
  const headers = fc.dictionary(fc.constantFrom("webhook-id", "svix-id", "elchi-event-id"), fc.string());
  fc.assert(
    fc.property(bodies, headers, fc.constantFrom(...Object.values(contracts)), (bytes, sent, { parse }) => {
      parse(bytes, sent);
    }),
    { numRuns: 1_000 },
  );
});
