import { randomUUID } from "node:crypto";
import { eraseOldBodies } from "./bodies.js";
import { type Ledger, run } from "./database.js";
import { operationOfEvent } from "./guards-sql.js";
import { firstIdAt } from "./id-at.js";
import { type DocumentPlace, eraseDocuments, firstDocument } from "./retention-documents.js";
import { beforeAll, countOldPayloads, erasePayloads, underLegalHold } from "./retention-payloads.js";

export interface RetentionOptions {
  /** Days after the end of an operation until its payload and prepared request are erased. */
  payloadDays: number;
  /** Days after its last upload until a document that nobody needs is erased. */
  documentDays: number;
  /** Days after which the raw bytes of a settled webhook are erased. */
  bodyDays: number;
  /** Rows per commit; 500 when left out. */
  limit?: number;
  /** Counts what would go and what would stay, and erases nothing. */
  dryRun?: boolean;
  /** Only this tenant; every tenant when left out. */
  tenantId?: string;
}

/** What a run erased of a tenant, and what is old enough but had to stay, by reason: counts, never what it was. */
export interface Retained {
  tenantId: string;
  erased: { payloads: number; subjects: number; documents: number; bodies: number };
  stayed: Record<string, number>;
}

/**
 * Erases what has outlived its days, tenant by tenant, in small commits: a run may be stopped anywhere and run twice at
 * once. Never touched: operations that are not final, events that are still open, whatever a legal hold covers, documents
 * that an open operation needs. Leaves one `erasure` row per tenant of which it erased anything.
 */
export async function runRetention(ledger: Ledger, options: RetentionOptions): Promise<Retained[]> {
  const { tenantId = null } = options;
  const tenants = await ledger.sql<{ tenantId: string }[]>`
    SELECT tenant_id AS "tenantId" FROM tenant WHERE ${tenantId}::text IS NULL OR tenant_id = ${tenantId} ORDER BY tenant_id`;
  const results: Retained[] = [];
  for (const each of tenants) results.push(await retain(ledger, each.tenantId, options));
  return results;
}

async function retain(ledger: Ledger, tenantId: string, options: RetentionOptions): Promise<Retained> {
  const result: Retained = { tenantId, erased: { payloads: 0, subjects: 0, documents: 0, bodies: 0 }, stayed: {} };
  try {
    await retainPayloads(ledger, result, options);
    await retainDocuments(ledger, result, options);
    await retainBodies(ledger, result, options);
  } finally {
    // Also where a later batch failed: what is committed is recorded.
    if (options.dryRun !== true) await recordErasure(ledger, result);
  }
  return result;
}

const defaultLimit = 500;

function stays(result: Retained, reason: string, count: number): void {
  if (count > 0) result.stayed[reason] = (result.stayed[reason] ?? 0) + count;
}

async function retainPayloads(ledger: Ledger, result: Retained, options: RetentionOptions): Promise<void> {
  const { tenantId, erased } = result;
  const days = options.payloadDays;
  const counted = await countOldPayloads(ledger, tenantId, days);
  stays(result, "payload-legal-hold", counted.held);
  stays(result, "payload-not-final", counted.notFinal);
  if (options.dryRun === true) {
    erased.payloads = counted.erasable;
    return;
  }
  let after: string | undefined = beforeAll;
  while (after !== undefined) {
    const batch = await erasePayloads(ledger, { tenantId, days, limit: options.limit ?? defaultLimit, after });
    erased.payloads += batch.payloads;
    erased.subjects += batch.subjects;
    after = batch.last;
  }
}

async function retainDocuments(ledger: Ledger, result: Retained, options: RetentionOptions): Promise<void> {
  const { limit = defaultLimit, documentDays: days, dryRun = false } = options;
  let after: DocumentPlace | undefined = firstDocument;
  while (after !== undefined) {
    const batch = await eraseDocuments(ledger, { tenantId: result.tenantId, days, limit, after, dryRun });
    result.erased.documents += batch.erased;
    for (const reason of batch.stayed) stays(result, `document-${reason}`, 1);
    after = batch.last;
  }
}

const settled = "i.status IN ('APPLIED','NO_OP','CONFLICT','DISCARDED')";
const heldBody = underLegalHold("b.tenant_id", `(${operationOfEvent("i")})`);
const countBodies = `SELECT count(*) FILTER (WHERE ${settled} AND NOT ${heldBody})::int AS erasable,
    count(*) FILTER (WHERE ${settled} AND ${heldBody})::int AS held, count(*) FILTER (WHERE NOT ${settled})::int AS open
  FROM webhook_body b
  JOIN webhook_inbox i ON i.tenant_id = b.tenant_id AND i.inbox_id = b.inbox_id AND i.received_at = b.received_at
  WHERE b.tenant_id = $1 AND b.inbox_id < ${firstIdAt("(now() - make_interval(days => $2::int))")}
    AND b.received_at < now() - make_interval(days => $2::int)`;

async function retainBodies(ledger: Ledger, result: Retained, options: RetentionOptions): Promise<void> {
  const { limit = defaultLimit, bodyDays, dryRun } = options;
  const { tenantId, erased } = result;
  const [counted] = await run<{ erasable: number; held: number; open: number }>(ledger.sql, countBodies, [
    tenantId,
    bodyDays,
  ]);
  stays(result, "body-legal-hold", counted?.held ?? 0);
  stays(result, "body-open-event", counted?.open ?? 0);
  if (dryRun === true) {
    erased.bodies = counted?.erasable ?? 0;
    return;
  }
  for (let count = limit; count >= limit; ) {
    count = await eraseOldBodies(ledger, bodyDays, limit, tenantId);
    erased.bodies += count;
  }
}

async function recordErasure(ledger: Ledger, { tenantId, erased, stayed }: Retained): Promise<void> {
  if (Object.values(erased).every((count) => count === 0)) return;
  const kept = Object.fromEntries(Object.entries(stayed).map(([reason, count]) => [`stayed-${reason}`, count]));
  await ledger.sql`
    INSERT INTO erasure (tenant_id, erasure_id, kind, who, why, counts)
    VALUES (${tenantId}, ${randomUUID()}, 'retention', 'retention', 'older than its days', ${ledger.sql.json({ ...erased, ...kept })})`;
}
