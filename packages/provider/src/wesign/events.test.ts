import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeliveryHeaders } from "../port.js";
import { webhookContracts } from "../webhooks/registry.js";
import { weSignFormat } from "./events.js";

const contracts = webhookContracts(weSignFormat);
const parseWeSignEvent = (bytes: Uint8Array, headers: DeliveryHeaders) => contracts.elchi?.parse(bytes, headers) ?? {};

const event = (more: object = {}, data: object = {}) =>
  Buffer.from(
    JSON.stringify({
      id: "evt_1",
      type: "signing_request.sent",
      created_at: "2026-11-30T12:00:00Z",
      data: { signing_request_id: "sr_1", document_id: "doc_1", ...data },
      ...more,
    }),
  );

describe("a delivery in our words", () => {
  it("the first one carries our ids", () => {
    const metadata = { operation_id: "op-1", tenant: "acme", deal: "42" };
    expect(parseWeSignEvent(event({}, { metadata }), {})).toEqual({
      eventId: "evt_1",
      type: "signing_request.sent",
      ref: "sr_1",
      status: "sent",
      occurredAt: "2026-11-30T12:00:00Z",
      operationId: "op-1",
      tenantId: "acme",
    });
  });

  it.each([
    ["signing_request.viewed", "viewed"],
    ["signing_request.signed", "partially-signed"],
    ["signing_request.completed", "completed"],
    ["signing_request.declined", "declined"],
    ["signing_request.withdrawn", "withdrawn"],
    ["signing_request.expired", "expired"],
    ["template_instance.staged", "staged"],
    ["signing_request.reminded", undefined],
  ])("%s means %s", (type, status) => {
    const parsed = parseWeSignEvent(event({ type }), {});
    expect("status" in parsed ? parsed.status : undefined).toBe(status);
    expect(parsed).toMatchObject({ ref: "sr_1", type });
  });

  it("a staged document without a signing request is known by its document", () => {
    const bytes = event({ type: "template_instance.staged" }, { signing_request_id: null });
    expect(parseWeSignEvent(bytes, {})).toMatchObject({ ref: "doc_1", status: "staged" });
  });

  it("the id is the signed one; another one in the header is only flagged", () => {
    expect(parseWeSignEvent(event(), { "elchi-event-id": "evt_1" })).not.toHaveProperty("headerIdDiffers");
    expect(parseWeSignEvent(event(), {})).not.toHaveProperty("headerIdDiffers");
    expect(parseWeSignEvent(event(), { "Elchi-Event-Id": "evt_2" })).toMatchObject({
      eventId: "evt_1",
      headerIdDiffers: true,
    });
  });

  it("one without an id is derived from what it says, weak, and the same however it is written", () => {
    for (const id of [undefined, 5, null]) {
      const read = parseWeSignEvent(event({ id }), {});
      expect(read).toMatchObject({
        weakId: true,
        ref: "sr_1",
        eventId: expect.stringMatching(/^derived:[0-9a-f]{64}$/),
      });
      expect(parseWeSignEvent(Buffer.concat([Buffer.from(" "), event({ id })]), {})).toEqual(read);
      expect(parseWeSignEvent(event({ id }, { signing_request_id: "sr_2" }), {})).not.toMatchObject({
        ...read,
        ref: "sr_2",
      });
    }
  });

  it.each([
    ["not-json", Buffer.from("\ufeff{}")],
    ["not-json", Buffer.from('{"id":"evt_1","id":"evt_2"}')],
    ["not-json", Buffer.from("[]")],
    ["shape", event({ id: "evt_\0" })],
    ["shape", event({ id: "e".repeat(256) })],
    ["shape", event({}, { signing_request_id: "sr\0" })],
    ["unknown-type", event({ type: "signing_request.exploded" })],
    ["unknown-type", event({ type: "constructor" })],
    ["shape", event({ type: 5 })],
    ["shape", event({ data: "sr_1" })],
    ["no-reference", event({}, { signing_request_id: "", document_id: null })],
  ])("is uninterpretable (%s), never guessed: case %#", (reason, bytes) => {
    expect(parseWeSignEvent(bytes, {})).toMatchObject({ uninterpretable: true, reason });
  });

  it("no bytes make it throw", () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void parseWeSignEvent(bytes, {})));
    fc.assert(fc.property(fc.json(), (text) => void parseWeSignEvent(Buffer.from(text), {})));
  });
});
