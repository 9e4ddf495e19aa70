import { randomBytes } from "node:crypto";
import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import { type NeutralPayload, newId } from "@countersign/runtime";
import {
  createConnection,
  createTenant,
  Ledger,
  migrate,
  normalisePayload,
  type Plan,
  plan,
  postgresDocumentStore,
} from "./index.js";

/** A ledger on a real PostgreSQL of its own, with two tenants and a connection each. For tests of this package. */
export interface TestLedger {
  ledger: Ledger;
  url: string;
  server: PostgresServer;
  documentSha256: string;
  stop(): Promise<void>;
}

export async function startTestLedger(): Promise<TestLedger> {
  const server = await startPostgres({ durable: false });
  const { url } = await createTestDatabase(server.url);
  await migrate(url);
  const ledger = new Ledger({
    databaseUrl: url,
    encryptionKey: randomBytes(32).toString("base64"),
    maxConnections: 20,
  });
  const documents = postgresDocumentStore(ledger);
  let documentSha256 = "";
  for (const tenantId of ["acme", "bravo"]) {
    await createTenant(ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
    await createConnection(ledger, {
      tenantId,
      connectionId: "main",
      provider: "wesign",
      baseUrl: "http://127.0.0.1:9",
      credential: "wsk_test",
      isDefault: true,
    });
    documentSha256 = await documents.put(tenantId, Buffer.from("%PDF-1.4 test"));
  }
  return {
    ledger,
    url,
    server,
    documentSha256,
    stop: async () => {
      await ledger.close();
      await server.stop();
    },
  };
}

/** A payload with one signer. */
export function samplePayload(documentSha256: string, change: Partial<NeutralPayload> = {}): NeutralPayload {
  return normalisePayload({
    schemaVersion: 1,
    documents: [{ sha256: documentSha256 }],
    signers: [{ email: "signer@example.com", role: "customer", order: 1 }],
    ...change,
  });
}

const voidRequest = () => ({ request: { path: "void" }, bodyDigest: Buffer.alloc(32, 2) });

/** Plans a SEND and returns its id. */
export async function planSend(
  test: TestLedger,
  options: { tenantId?: string; intentKey?: string; supersedes?: string; mode?: "void-first" | "send-first" } = {},
): Promise<string> {
  const operationId = newId();
  const request: Plan = {
    tenantId: options.tenantId ?? "acme",
    operationId,
    intentKey: options.intentKey ?? `intent-${operationId}`,
    approved: { action: "SEND", connectionId: "main", payload: samplePayload(test.documentSha256) },
    request: { path: "send" },
    bodyDigest: Buffer.alloc(32, 1),
    ...(options.supersedes === undefined
      ? {}
      : { supersedes: { operationId: options.supersedes, mode: options.mode ?? "void-first", voidRequest } }),
  };
  const outcome = await plan(test.ledger, request);
  if (outcome.kind !== "created") throw new Error(`expected created, got ${outcome.kind}`);
  return operationId;
}

/** Plans a VOID of an operation and returns its id. */
export async function planVoid(test: TestLedger, target: string): Promise<string> {
  const operationId = newId();
  const outcome = await plan(test.ledger, {
    tenantId: "acme",
    operationId,
    intentKey: `void-${operationId}`,
    approved: { action: "VOID", connectionId: "main", payload: { schemaVersion: 1 }, target: { operationId: target } },
    request: { path: "void" },
    bodyDigest: Buffer.alloc(32, 2),
  });
  if (outcome.kind !== "created") throw new Error(`expected created, got ${outcome.kind}`);
  return operationId;
}
