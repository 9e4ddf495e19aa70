import { randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { checkReason } from "./reason.js";

export interface LegalHold {
  legalHoldId: string;
  /** null: everything of the tenant. */
  operationId: string | null;
  placedBy: string;
  reason: string;
  createdAt: string;
}

/**
 * Keeps what belongs to an operation, or to the whole tenant, from every erasure until the hold is released. Once this
 * has returned nothing that it covers is erased. Throws not-found for the tenant or operation, and `reason-…`.
 */
export async function placeLegalHold(
  ledger: Ledger,
  hold: { tenantId: string; operationId?: string; by: string; reason: string },
): Promise<string> {
  checkReason(hold.by, hold.reason);
  const legalHoldId = randomUUID();
  const operationId = hold.operationId ?? null;
  const result = await ledger.sql`
    INSERT INTO legal_hold (tenant_id, legal_hold_id, operation_id, placed_by, reason)
    SELECT t.tenant_id, ${legalHoldId}::uuid, ${operationId}::uuid, ${hold.by}, ${hold.reason} FROM tenant t
    WHERE t.tenant_id = ${hold.tenantId} AND (${operationId}::uuid IS NULL OR EXISTS (
      SELECT 1 FROM signing_operation o WHERE o.tenant_id = t.tenant_id AND o.operation_id = ${operationId}::uuid))`;
  if (result.count === 0) throw new NotFoundError(operationId === null ? "tenant" : "operation");
  return legalHoldId;
}

/** Ends a legal hold; erasures that it kept off happen with the next run. Throws not-found, and `legal-hold-released`. */
export async function releaseLegalHold(
  ledger: Ledger,
  release: { tenantId: string; legalHoldId: string; by: string; reason: string },
): Promise<void> {
  checkReason(release.by, release.reason);
  const { tenantId, legalHoldId } = release;
  const released = await ledger.sql`
    UPDATE legal_hold SET released_at = now(), released_by = ${release.by}, release_reason = ${release.reason}
    WHERE tenant_id = ${tenantId} AND legal_hold_id = ${legalHoldId} AND released_at IS NULL`;
  if (released.count > 0) return;
  const [known] = await ledger.sql`
    SELECT 1 FROM legal_hold WHERE tenant_id = ${tenantId} AND legal_hold_id = ${legalHoldId}`;
  if (known === undefined) throw new NotFoundError("legal hold");
  throw new PlanRefusedError("legal-hold-released", "this legal hold has been released already");
}

/** Legal holds in force, the oldest first. */
export async function listLegalHolds(ledger: Ledger, tenantId: string): Promise<LegalHold[]> {
  return await ledger.sql<LegalHold[]>`
    SELECT legal_hold_id AS "legalHoldId", operation_id AS "operationId", placed_by AS "placedBy", reason, created_at AS "createdAt"
    FROM legal_hold WHERE tenant_id = ${tenantId} AND released_at IS NULL ORDER BY created_at`;
}
