import type { DocumentStore } from "@countersign/ledger";

const maxBytes = 64 * 1024 * 1024;

/**
 * Keeps the documents used last in memory, so that planning need not read them again to digest the body. They are
 * content-addressed: a copy never goes stale.
 */
export function keepDocuments(store: DocumentStore): DocumentStore {
  const kept = new Map<string, Buffer>();
  let size = 0;
  const keep = (key: string, bytes: Buffer): void => {
    if (bytes.length > maxBytes / 4 || kept.has(key)) return;
    kept.set(key, bytes);
    size += bytes.length;
    for (const [oldest, { length }] of kept) {
      if (size <= maxBytes) break;
      kept.delete(oldest);
      size -= length;
    }
  };
  return {
    async put(tenantId, bytes) {
      const sha256 = await store.put(tenantId, bytes);
      keep(`${tenantId} ${sha256}`, Buffer.from(bytes));
      return sha256;
    },
    async get(tenantId, sha256) {
      const key = `${tenantId} ${sha256}`;
      const known = kept.get(key);
      if (known !== undefined) return known;
      const bytes = await store.get(tenantId, sha256);
      keep(key, bytes);
      return bytes;
    },
  };
}
