import { sha256 } from "@countersign/runtime";
import type { Ledger } from "./database.js";
import { NotFoundError } from "./errors.js";

/** Where document bytes are kept; PostgreSQL by default. Content-addressed, so that writing twice is writing once. */
export interface DocumentStore {
  /** Returns the SHA-256 of the bytes, lower-case hex. What was erased is there again; the days of retention begin anew. */
  put(tenantId: string, bytes: Uint8Array): Promise<string>;
  /** Throws {@link NotFoundError} where this tenant has no such document. */
  get(tenantId: string, sha256Hex: string): Promise<Buffer>;
}

const associated = (tenantId: string, digest: string): string => `${tenantId}/document/${digest}`;

/** Encrypted rows of the `document` table. */
export function postgresDocumentStore(ledger: Ledger): DocumentStore {
  return {
    async put(tenantId, bytes) {
      const digest = sha256(bytes);
      const hex = digest.toString("hex");
      const key = await ledger.tenantKey(tenantId);
      await ledger.sql`
        INSERT INTO document (tenant_id, sha256, size, bytes, key_id)
        VALUES (${tenantId}, ${digest}, ${bytes.length}, ${key.seal(bytes, associated(tenantId, hex))}, ${key.keyId})
        ON CONFLICT (tenant_id, sha256) DO UPDATE SET created_at = now(), erased_at = NULL,
          bytes = COALESCE(document.bytes, EXCLUDED.bytes),
          key_id = CASE WHEN document.bytes IS NULL THEN EXCLUDED.key_id ELSE document.key_id END
          WHERE document.bytes IS NULL OR document.created_at < now() - interval '1 day'`;
      return hex;
    },
    async get(tenantId, digest) {
      const key = await ledger.tenantKey(tenantId);
      const [row] = await ledger.sql<{ bytes: Buffer | null }[]>`
        SELECT bytes FROM document WHERE tenant_id = ${tenantId} AND sha256 = ${Buffer.from(digest, "hex")}`;
      if (row === undefined || row.bytes === null) throw new NotFoundError("document");
      return key.open(row.bytes, associated(tenantId, digest));
    },
  };
}
