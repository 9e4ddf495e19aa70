import { neutralPayload } from "@countersign/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Approved, differingParts, payloadHash } from "./hash.js";
import { normaliseAddress, normalisePayload } from "./normalise.js";

const digest = "a".repeat(64);
const signer = { email: "anna@example.com", role: "customer", order: 1 };
const approved = (change: object = {}): Approved => ({
  action: "SEND",
  connectionId: "main",
  payload: normalisePayload(neutralPayload.parse({ documents: [{ sha256: digest }], signers: [signer], ...change })),
});
const hashOf = (change: object = {}): string => payloadHash(approved(change)).hash.toString("hex");

describe("the hash", () => {
  it("does not change with key order, file name or metadata", () => {
    expect(hashOf({ signers: [{ order: 1, role: "customer", email: "anna@example.com" }] })).toBe(hashOf());
    expect(hashOf({ documents: [{ sha256: digest, fileName: "other.pdf" }] })).toBe(hashOf());
    expect(hashOf({ metadata: { reference: "C-1" } })).toBe(hashOf());
  });

  const changes: [string, object][] = [
    ["documents", { documents: [{ sha256: "b".repeat(64) }] }],
    ["signers", { signers: [{ ...signer, email: "bert@example.com" }] }],
    ["signers", { signers: [{ ...signer, order: 2 }] }],
    ["fields", { fields: [{ type: "signature", role: "customer", page: 1, x: 0.1, y: 0.2 }] }],
    ["message", { message: "Please sign" }],
    ["expiresInDays", { expiresInDays: 5 }],
    ["reminders", { reminders: { everyDays: 3 } }],
    ["observers", { observers: ["boss@example.com"] }],
    ["locale", { locale: "de" }],
    ["signingMode", { signingMode: "parallel" }],
    ["template", { template: { id: "tpl" } }],
    ["stageOnly", { stageOnly: true }],
  ];
  for (const [part, change] of changes) {
    it(`changes with ${part}, and only that part differs (${Object.keys(change).join()})`, () => {
      const [a, b] = [payloadHash(approved()), payloadHash(approved(change))];
      expect(a.hash.equals(b.hash)).toBe(false);
      expect(differingParts(a.parts, b.parts)).toEqual([part]);
    });
  }

  it("covers action, connection and target", () => {
    const target = { operationId: "0190b5a0-0000-7000-8000-000000000001" };
    const payload = { schemaVersion: 1 } as const;
    const hashes = [
      payloadHash({ action: "VOID", connectionId: "main", payload, target }),
      payloadHash({ action: "RESEND", connectionId: "main", payload, target }),
      payloadHash({ action: "VOID", connectionId: "other", payload, target }),
      payloadHash({ action: "VOID", connectionId: "main", payload, target: { providerRef: "sr_1" } }),
    ].map(({ hash }) => hash.toString("hex"));
    expect(new Set(hashes).size).toBe(4);
  });

  it("of what is read back from storage is the hash of what was stored", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 50, unit: "grapheme" }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (text, x) => {
          const parsed = neutralPayload.safeParse({
            documents: [{ sha256: digest }],
            signers: [{ ...signer, name: text }],
            fields: [{ type: "text", role: "customer", page: 1, x, y: x }],
          });
          if (!parsed.success) return;
          const payload = normalisePayload(parsed.data);
          const stored = neutralPayload.parse(JSON.parse(JSON.stringify(payload)));
          const hash = (value: typeof payload) =>
            payloadHash({ action: "SEND", connectionId: "main", payload: value }).hash.toString("hex");
          expect(hash(stored)).toBe(hash(payload));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("addresses by one rule", () => {
  it.each([
    ["Anna.Ex+deal@Example.COM", "Anna.Ex+deal@example.com"],
    ["anna@bücher.example", "anna@xn--bcher-kva.example"],
    ["anna@xn--bcher-kva.example", "anna@xn--bcher-kva.example"],
  ])("%s is kept as %s", (given, kept) => {
    expect(normaliseAddress(given)).toBe(kept);
    expect(normaliseAddress(kept)).toBe(kept);
  });
});
