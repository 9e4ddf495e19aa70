import type { AnySql } from "./database.js";
import type { SigningKey, SigningRow } from "./signing.js";

/** What a story about a request meets. */
export interface RequestStanding extends SigningRow {
  /** The operation that the reference was seen for, also while nothing is bound to it: it can never become another's. */
  seenFor: string | null;
}

/** How a request stands; all null where nobody has spoken of it. */
export async function readStanding(sql: AnySql, key: SigningKey): Promise<RequestStanding> {
  const [row] = await sql<RequestStanding[]>`
    SELECT s.operation_id AS "operationId", s.status, r.operation_id AS "seenFor"
    FROM (VALUES (1)) AS one(n)
    LEFT JOIN contract_signing s ON s.tenant_id = ${key.tenantId} AND s.connection_id = ${key.connectionId}
      AND s.provider_ref = ${key.providerRef}
    LEFT JOIN operation_reference r ON r.tenant_id = ${key.tenantId} AND r.connection_id = ${key.connectionId}
      AND r.provider_ref = ${key.providerRef}`;
  return row ?? { operationId: null, status: null, seenFor: null };
}

/** Is this a SEND of this tenant on this connection, so that an event which names it is evidence for it? */
export async function isOwnSend(
  sql: AnySql,
  operation: { tenantId: string; connectionId: string; operationId: string },
): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM signing_operation WHERE tenant_id = ${operation.tenantId} AND operation_id = ${operation.operationId}
      AND connection_id = ${operation.connectionId} AND action = 'SEND'`;
  return rows.length === 1;
}
