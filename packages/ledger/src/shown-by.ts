import type { TransactionSql } from "./database.js";
import { guardStates, sqlState } from "./errors.js";
import { recordEvidence } from "./evidence.js";
import type { SigningKey, SigningRow } from "./signing.js";
import type { SigningStatus } from "./signing-table.js";

/** A story that shows a request, and what it says of ours. */
export interface Showing {
  key: SigningKey;
  status?: SigningStatus | undefined;
  /** Our own metadata, where the story carries it. */
  operationId?: string | undefined;
  source: "webhook" | "lookup";
  actor: string;
  /** Ids and codes. */
  details: object;
}

/**
 * Our metadata makes a story evidence on that operation, of this tenant and this connection only. The operation it is
 * evidence for; `refused` where the reference belongs to another one; undefined where there is nothing to record.
 */
export async function recordShown(
  sql: TransactionSql,
  showing: Showing,
  bound: SigningRow,
): Promise<string | "refused" | undefined> {
  const { key, status } = showing;
  // A draft of ours that is more than staged now was sent: evidence although only the first event carries our metadata.
  const wasDraft = bound.status === "STAGED" && status !== undefined && status !== "STAGED" && status !== "DISCARDED";
  const operationId = showing.operationId ?? (wasDraft ? (bound.operationId ?? undefined) : undefined);
  if (operationId === undefined || (bound.operationId === operationId && !wasDraft)) return undefined;
  const [operation] = await sql<{ known: boolean }[]>`
    SELECT EXISTS (SELECT 1 FROM operation_reference r WHERE r.tenant_id = o.tenant_id AND r.connection_id = o.connection_id
        AND r.provider_ref = ${key.providerRef} AND r.operation_id = o.operation_id AND r.role <> 'draft') AS known
    FROM signing_operation o WHERE o.tenant_id = ${key.tenantId} AND o.operation_id = ${operationId}
      AND o.connection_id = ${key.connectionId} AND o.action = 'SEND'`;
  // Copied metadata of somebody else's request, or another connection's: not evidence for anything of ours.
  if (operation === undefined || operation.known) return undefined;
  try {
    await sql.savepoint(async (inner) => {
      await recordEvidence(inner, {
        tenantId: key.tenantId,
        operationId,
        providerRef: key.providerRef,
        role: status === "STAGED" || status === "DISCARDED" ? "draft" : "evidence",
        source: showing.source,
        actor: showing.actor,
        reason: `${showing.source === "webhook" ? "event" : "record"}-${showing.operationId === undefined ? "of-our-draft" : "with-our-metadata"}`,
        details: showing.details,
      });
    });
  } catch (error) {
    if (sqlState(error) === guardStates.referenceOfAnotherOperation) return "refused";
    throw error;
  }
  return operationId;
}
