import { type NeutralPayload, neutralPayload, type TargetPayload, targetPayload } from "@countersign/runtime";
import type { Ledger } from "./database.js";
import { DecryptionError } from "./errors.js";
import { type Approved, payloadHash } from "./hash.js";
import type { ClaimedRow } from "./transitions.js";

/** What a claim brought, opened and compared with what was approved. */
export type OpenedRequest =
  | { kind: "intact"; request: unknown; payload: NeutralPayload | TargetPayload; bodyDigest: string }
  /** Cannot be read now (wrong key, erased): nothing is sent, and that is all it means. */
  | { kind: "unreadable"; cause: string }
  /** Readable, but no longer what was approved: nothing is sent, a person decides. */
  | { kind: "changed"; what: "payload" };

export const associatedWith = (tenantId: string, operationId: string, what: "payload" | "request"): string =>
  `${tenantId}/approved_payload/${operationId}/${what}`;

/** Decrypts payload and request of a claimed row and recomputes the payload's hash (law 3). Never throws for bad bytes. */
export async function openApproved(ledger: Ledger, row: ClaimedRow): Promise<OpenedRequest> {
  if (row.payload === null || row.request === null) return { kind: "unreadable", cause: "erased" };
  const key = await ledger.tenantKey(row.tenant_id);
  const read = (sealed: Buffer, what: "payload" | "request"): unknown =>
    JSON.parse(key.open(sealed, associatedWith(row.tenant_id, row.operation_id, what)).toString());
  try {
    const stored = read(row.payload, "payload");
    const approved = approvedOf(row, stored);
    if (approved === undefined || !payloadHash(approved).hash.equals(row.payload_hash)) {
      return { kind: "changed", what: "payload" };
    }
    const request = read(row.request, "request");
    return { kind: "intact", request, payload: approved.payload, bodyDigest: row.body_digest.toString("hex") };
  } catch (error) {
    if (error instanceof DecryptionError || error instanceof SyntaxError)
      return { kind: "unreadable", cause: "decryption" };
    throw error;
  }
}

function approvedOf(row: ClaimedRow, stored: unknown): Approved | undefined {
  const connectionId = row.connection_id;
  if (row.action === "SEND") {
    const payload = neutralPayload.safeParse(stored);
    return payload.success ? { action: "SEND", connectionId, payload: payload.data } : undefined;
  }
  const payload = targetPayload.safeParse(stored);
  if (!payload.success) return undefined;
  const target =
    row.target_operation_id !== null ? { operationId: row.target_operation_id } : { providerRef: row.target_ref ?? "" };
  return { action: row.action, connectionId, payload: payload.data, target };
}
