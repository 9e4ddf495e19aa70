import type { NeutralPayloadInput } from "@countersign/runtime";
import { describe, expect, it } from "vitest";
import { bodyDigest } from "../assemble.js";
import type { PreparedRequest } from "../port.js";
import { createProviders } from "../registry.js";
import { documentBytes, documentDigest, ids, payloadOf, prepared } from "../testing/requests.js";
import { prepareOnTarget, prepareSend } from "./prepare.js";

const documents = new Map([[documentDigest, documentBytes]]);
const full: Partial<NeutralPayloadInput> = {
  signers: [
    { email: "Second@Example.COM", role: "seller", order: 2 },
    { email: "Anna.Ex+deal@Example.COM", role: "buyer", order: 1, name: "Änna" },
  ],
  fields: [{ type: "signature", role: "buyer", page: 1, x: 0.1, y: 0.2 }],
  observers: ["Legal@Example.com"],
  signingMode: "sequential",
  locale: "en-GB",
  expiresInDays: 14,
  metadata: { deal: "42" },
};

function fieldsOf(request: PreparedRequest): [string, string][] {
  if (request.body.kind !== "multipart") return [];
  return request.body.parts.map((part) => [
    part.name,
    part.kind === "field" ? part.value : `document ${part.fileName}`,
  ]);
}

describe("SEND of a file", () => {
  it("is the provider's recognised fields in one fixed order, addresses exactly as approved", () => {
    const request = prepared(prepareSend(payloadOf(full), ids));
    expect(request).toMatchObject({
      method: "POST",
      path: "/v1/signing-requests",
      idempotencyHeader: "Idempotency-Key",
    });
    expect(fieldsOf(request)).toEqual([
      ["file", "document document.pdf"],
      [
        "signers",
        '[{"email":"Anna.Ex+deal@Example.COM","role":"buyer","order":1,"name":"Änna"},' +
          '{"email":"Second@Example.COM","role":"seller","order":2}]',
      ],
      ["fields", '[{"type":"signature","role":"buyer","page":1,"x":0.1,"y":0.2}]'],
      ["observer_emails", '["Legal@Example.com"]'],
      ["signing_mode", "sequential"],
      ["locale", "en-GB"],
      ["expires_in_days", "14"],
      ["metadata", `{"operation_id":"${ids.operationId}","tenant":"acme","deal":"42"}`],
    ]);
  });

  it("sends no field that the payload leaves out, and the file name that it gives", () => {
    const named = payloadOf({ documents: [{ sha256: documentDigest, fileName: "Vertrag.pdf" }] });
    expect(
      fieldsOf(prepared(prepareSend(named, ids))).map(([name, value]) => (name === "file" ? value : name)),
    ).toEqual(["document Vertrag.pdf", "signers", "metadata"]);
  });

  it("assembles to the same bytes every time, and these never change by a release", () => {
    const digests = [1, 2, 3].map(() => bodyDigest(prepared(prepareSend(payloadOf(full), ids)), documents));
    // A change here breaks the comparison of every stored request: it needs a new request version, not a new number.
    expect(new Set(digests)).toEqual(new Set(["07458c3ea98292266e3562dba79ab16767b84e933d8403185673cd261697fc70"]));
  });
});

describe("SEND from a template", () => {
  const template = { documents: [], template: { id: "tpl/1", values: { price: "10" } } };

  it("is the stored JSON text, to the template's own path", () => {
    const request = prepared(prepareSend(payloadOf({ ...template, locale: "en" }), ids));
    expect(request.path).toBe("/v1/templates/tpl%2F1/instantiate");
    expect(request.body).toEqual({
      kind: "json",
      text:
        '{"values":{"price":"10"},"signers":[{"email":"anna.ex@example.com","role":"buyer","order":1}],"locale":"en",' +
        `"metadata":{"operation_id":"${ids.operationId}","tenant":"acme"}}`,
    });
  });

  it("asks for review only to stage", () => {
    const { body } = prepared(prepareSend(payloadOf({ ...template, stageOnly: true }), ids));
    expect(body.kind === "json" && JSON.parse(body.text)).toMatchObject({ review: true });
  });
});

describe("what cannot be sent is refused by the field's name, never dropped", () => {
  const second = { sha256: "0".repeat(64) };
  const template = { id: "tpl_1" };
  it.each<[string, Partial<NeutralPayloadInput>]>([
    ["message", { message: "Please sign" }],
    ["reminders", { reminders: { everyDays: 3 } }],
    ["metadata.operation_id", { metadata: { operation_id: "x" } }],
    ["metadata.tenant", { metadata: { tenant: "x" } }],
    ["documents", { documents: [{ sha256: documentDigest }, second] }],
    [
      "fields[1].document",
      { fields: [0, 1].map((document) => ({ type: "date", role: "r", document, page: 1, x: 0, y: 0 })) },
    ],
    ["stageOnly", { stageOnly: true }],
    ["documents", { template }],
    ["fields", { documents: [], template, fields: [{ type: "date", role: "r", page: 1, x: 0, y: 0 }] }],
    ["template.id", { documents: [], template: { id: ".." } }],
  ])("%s: case %#", (field, more) => {
    expect(prepareSend(payloadOf(more), ids)).toMatchObject({ refused: true, field });
  });

  it("a message with VOID", () => {
    expect(prepareOnTarget("VOID", { schemaVersion: 1, message: "x" })).toMatchObject({ field: "message" });
  });
});

describe("VOID and RESEND", () => {
  it.each([
    ["VOID", "/v1/signing-requests/{target_ref}/withdraw"],
    ["RESEND", "/v1/signing-requests/{target_ref}/remind"],
  ] as const)("%s carries neither body nor key", (action, path) => {
    expect(prepareOnTarget(action, { schemaVersion: 1 })).toEqual({ method: "POST", path, body: { kind: "none" } });
  });
});

describe("no request carries what an attempt, a clock or a connection could change", () => {
  it("nor asks for what a lost answer would lose", () => {
    const requests = [payloadOf(full), payloadOf({ documents: [], template: { id: "t" } })].map((payload) =>
      JSON.stringify(prepareSend(payload, ids)),
    );
    for (const text of requests) {
      expect(text).not.toMatch(/validate_only|file_url|callback_url|authorization|attempt/i);
    }
  });

  it("the capability record calls no replay safe and no lookup documented", () => {
    for (const provider of createProviders().all) {
      for (const { idempotency, lookup } of Object.values(provider.capabilities)) {
        expect(idempotency.kind === "keyed" && idempotency.replaySafe).toBe(false);
        expect(lookup.documented).toBe(false);
      }
    }
  });
});
