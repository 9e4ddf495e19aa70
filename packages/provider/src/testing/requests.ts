import { createHash } from "node:crypto";
import { type NeutralPayloadInput, neutralPayload } from "@countersign/runtime";
import type { CallContext, PreparedRequest, Refusal } from "../port.js";

/** Not a real PDF: an adapter never reads it. */
export const documentBytes = Buffer.from("%PDF-1.7 a contract");
export const documentDigest = createHash("sha256").update(documentBytes).digest("hex");
export const ids = { tenantId: "acme", operationId: "0190b7e2-0000-7000-8000-000000000001" };

/** A payload as the ledger would hold it. */
export function payloadOf(more: Partial<NeutralPayloadInput> = {}) {
  return neutralPayload.parse({
    documents: [{ sha256: documentDigest }],
    signers: [{ email: "anna.ex@example.com", role: "buyer", order: 1 }],
    ...more,
  });
}

/** The request, where a refusal would be a mistake of the test. */
export function prepared(result: PreparedRequest | Refusal): PreparedRequest {
  if ("refused" in result) throw new Error(`refused: ${result.field}`);
  return result;
}

/** A call that may write, with what it reported. */
export function callContext(baseUrl: string, more: Partial<CallContext> = {}) {
  const reported: [ref: string, role: string][] = [];
  const call: CallContext = {
    baseUrl,
    credential: "wsk_test",
    providerKey: "6f1c2f9e-1f57-4c1e-9a0b-0d2c9f6f7a11",
    ...ids,
    document: () => Promise.resolve(documentBytes),
    deadlineMs: 5_000,
    mayWrite: () => true,
    reportReference: (ref, role) => {
      reported.push([ref, role]);
      return Promise.resolve();
    },
    ...more,
  };
  return { call, reported };
}
