import type { Ledger } from "./database.js";

/** A row that one list may settle together with others. */
export interface Companion {
  operationId: string;
  firstAttemptAt: string;
}

/**
 * SENDs of a connection that are UNKNOWN, may be looked at now and can only be settled by asking the provider: they go
 * into one list. The oldest first.
 */
export async function dueForLookup(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  limit: number,
): Promise<Companion[]> {
  return await ledger.sql<Companion[]>`
    SELECT operation_id AS "operationId", first_attempt_at AS "firstAttemptAt" FROM signing_operation
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId} AND state = 'UNKNOWN' AND action = 'SEND'
      AND open_attempts > 0 AND references_seen = 0 AND (not_before IS NULL OR not_before <= now())
    ORDER BY operation_id LIMIT ${limit}`;
}
