import type { Ledger } from "./database.js";
import { NotFoundError } from "./errors.js";

/** A producer's key as it may be shown: never the key. */
export interface ListedApiKey {
  keyId: string;
  name: string;
  scopes: string[];
  createdAt: string;
  revokedAt: string | null;
}

/** A tenant's keys, the revoked ones too, in the order of their making. */
export async function listApiKeys(ledger: Ledger, tenantId: string): Promise<ListedApiKey[]> {
  return await ledger.sql<ListedApiKey[]>`
    SELECT key_id AS "keyId", name, to_jsonb(scopes) AS scopes, created_at AS "createdAt", revoked_at AS "revokedAt"
    FROM api_key WHERE tenant_id = ${tenantId} ORDER BY created_at, key_id`;
}

/** Ends a key at once; false where it was ended before. Throws not-found, also for another tenant's. */
export async function revokeApiKey(ledger: Ledger, tenantId: string, keyId: string): Promise<boolean> {
  const revoked = await ledger.sql`
    UPDATE api_key SET revoked_at = now() WHERE tenant_id = ${tenantId} AND key_id = ${keyId} AND revoked_at IS NULL`;
  if (revoked.count === 1) return true;
  const [row] = await ledger.sql`SELECT 1 FROM api_key WHERE tenant_id = ${tenantId} AND key_id = ${keyId}`;
  if (row === undefined) throw new NotFoundError("API key");
  return false;
}
