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
    const approved = approvedOf(row, stored).find((each) => payloadHash(each).hash.equals(row.payload_hash));
    if (approved === undefined) return { kind: "changed", what: "payload" };
    const request = read(row.request, "request");
    return { kind: "intact", request, payload: approved.payload, bodyDigest: row.body_digest.toString("hex") };
  } catch (error) {
    if (error instanceof DecryptionError || error instanceof SyntaxError)
      return { kind: "unreadable", cause: "decryption" };
    throw error;
  }
}

/**
 * A SEND's payload in the clear, for the moment of a decision; undefined where it has been erased, can't be read or is
 * another action's.
 */
export async function openPayload(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
): Promise<NeutralPayload | undefined> {
  const [row] = await ledger.sql<{ payload: Buffer | null }[]>`
    SELECT payload FROM approved_payload WHERE tenant_id = ${tenantId} AND operation_id = ${operationId}`;
  if (row === undefined || row.payload === null) return undefined;
  const key = await ledger.tenantKey(tenantId);
  try {
    const stored: unknown = JSON.parse(
      key.open(row.payload, associatedWith(tenantId, operationId, "payload")).toString(),
    );
    const payload = neutralPayload.safeParse(stored);
    return payload.success ? payload.data : undefined;
  } catch (error) {
    if (error instanceof DecryptionError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/**
 * What the stored payload can have been approved as. An operation on a target was approved against the target operation
 * or, where a decision planned it for one of several references, against that reference; both columns are frozen.
 */
function approvedOf(row: ClaimedRow, stored: unknown): Approved[] {
  const connectionId = row.connection_id;
  const { action } = row;
  if (action === "SEND") {
    const payload = neutralPayload.safeParse(stored);
    return payload.success ? [{ action, connectionId, payload: payload.data }] : [];
  }
  const payload = targetPayload.safeParse(stored);
  if (!payload.success) return [];
  const targets = [
    ...(row.target_operation_id === null ? [] : [{ operationId: row.target_operation_id }]),
    ...(row.target_ref === null ? [] : [{ providerRef: row.target_ref }]),
  ];
  return targets.map((target) => ({ action, connectionId, payload: payload.data, target }));
}
