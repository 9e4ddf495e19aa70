import type { Ledger } from "./database.js";
import type { OperationView } from "./read.js";
import { getOperations } from "./read.js";
import { documentToken, signerToken } from "./subjects.js";

/** What a search is for. */
export type Search =
  | { readonly text: string }
  /** SHA-256 of a document, lower-case hex. */
  | { readonly documentSha256: string };

/** What a text was taken for. */
export type SearchKind = "operation-id" | "intent-key" | "reference" | "document" | "code" | "signer" | "nothing";

export interface Found {
  as: SearchKind;
  /** Newest first. */
  operations: OperationView[];
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const address = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/**
 * Finds a tenant's operations by whatever somebody at 3 a.m. has in hand: operation id, intent key, provider reference,
 * document digest, machine code of an answer, or signer's address (through its keyed token; it is stored and logged
 * nowhere). The first kind that finds something wins; each is one range of an index.
 */
export async function searchOperations(
  ledger: Ledger,
  tenantId: string,
  search: Search,
  page: { readonly limit: number; readonly cursor?: string },
): Promise<Found> {
  for (const [as, find] of attempts(ledger, tenantId, search, page)) {
    const ids = await find();
    if (ids.length === 0) continue;
    const rows = await getOperations(
      ledger,
      ids.map((operationId) => ({ tenantId, operationId })),
    );
    rows.sort((a, b) => (a.operationId < b.operationId ? 1 : -1));
    return { as, operations: rows };
  }
  return { as: "nothing", operations: [] };
}

function attempts(
  ledger: Ledger,
  tenantId: string,
  search: Search,
  page: { readonly limit: number; readonly cursor?: string },
): [SearchKind, () => Promise<string[]>][] {
  const { sql } = ledger;
  const ids = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);
  const before = (column: string) =>
    page.cursor === undefined ? sql`true` : sql`${sql(column)} < ${page.cursor}::uuid`;
  const subject = async (kind: "signer" | "document", token: Buffer): Promise<string[]> =>
    ids(
      await sql<{ id: string }[]>`
      SELECT operation_id AS id FROM operation_subject
      WHERE tenant_id = ${tenantId} AND kind = ${kind} AND token = ${token} AND ${before("operation_id")}
      ORDER BY operation_id DESC LIMIT ${page.limit}`,
    );
  const document = (sha256: string) => async () =>
    await subject("document", documentToken(await ledger.tenantKey(tenantId), sha256));
  if ("documentSha256" in search) return [["document", document(search.documentSha256)]];
  const text = search.text.trim();
  // What no column can hold finds nothing.
  if (text === "" || text.includes("\0") || !text.isWellFormed()) return [];
  const byIntent = async (): Promise<string[]> =>
    ids(
      await sql<{ id: string }[]>`
      SELECT operation_id AS id FROM signing_operation
      WHERE tenant_id = ${tenantId} AND intent_key = ${text} AND ${before("operation_id")}`,
    );
  if (address.test(text)) {
    return [
      ["signer", async () => await subject("signer", signerToken(await ledger.tenantKey(tenantId), text))],
      ["intent-key", byIntent],
    ];
  }
  const list: [SearchKind, () => Promise<string[]>][] = [];
  if (uuid.test(text)) {
    list.push([
      "operation-id",
      async () =>
        ids(
          await sql<{ id: string }[]>`
          SELECT operation_id AS id FROM signing_operation
          WHERE tenant_id = ${tenantId} AND operation_id = ${text}::uuid AND ${before("operation_id")}`,
        ),
    ]);
  }
  if (/^[0-9a-f]{64}$/i.test(text)) list.push(["document", document(text.toLowerCase())]);
  list.push(["intent-key", byIntent]);
  list.push([
    "reference",
    async () =>
      ids(
        await sql<{ id: string }[]>`
        SELECT DISTINCT r.operation_id AS id FROM provider_connection c
        JOIN operation_reference r ON r.tenant_id = c.tenant_id AND r.connection_id = c.connection_id AND r.provider_ref = ${text}
        WHERE c.tenant_id = ${tenantId} AND ${before("r.operation_id")} ORDER BY 1 DESC LIMIT ${page.limit}`,
      ),
  ]);
  list.push([
    "code",
    async () =>
      ids(
        await sql<{ id: string }[]>`
        SELECT operation_id AS id FROM signing_operation
        WHERE tenant_id = ${tenantId} AND last_observation ->> 'code' = ${text} AND ${before("operation_id")}
        ORDER BY operation_id DESC LIMIT ${page.limit}`,
      ),
  ]);
  return list;
}
