import type { DocumentStore } from "@countersign/ledger";
import { LRUCache } from "lru-cache";

/** Documents are content-addressed, so a copy never goes stale; bounded by bytes. */
export function cachedDocuments(store: DocumentStore, maxBytes: number): DocumentStore {
  const cache = new LRUCache<string, Buffer>({
    maxSize: maxBytes,
    sizeCalculation: (bytes) => Math.max(1, bytes.length),
  });
  return {
    put: (tenantId, bytes) => store.put(tenantId, bytes),
    async get(tenantId, digest) {
      const key = `${tenantId} ${digest}`;
      const known = cache.get(key);
      if (known !== undefined) return known;
      const bytes = await store.get(tenantId, digest);
      cache.set(key, bytes);
      return bytes;
    },
  };
}
