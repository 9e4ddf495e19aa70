import { createHmac, randomBytes, randomUUID } from "node:crypto";
// biome-ignore-start lint/style/noRestrictedImports: only tests import this file
import { createTestDatabase, startPostgres } from "@countersign/devstack";
// biome-ignore-end lint/style/noRestrictedImports: only tests import this file
import {
  claimForSubmit,
  confirm,
  createConnection,
  createTenant,
  createWebhookEndpoint,
  type DueJob,
  Ledger,
  migrate,
  plan,
  postgresDocumentStore,
} from "@countersign/ledger";
import { createProviders, type Providers } from "@countersign/provider";
import { createLogger, createMetrics, neutralPayload, newId } from "@countersign/runtime";
import { type ApplyOutcome, type ApplyParts, applyInboxEntry } from "./apply-event.js";
import { inboxCheck } from "./inbox-check.js";
import { buildIngress } from "./ingress.js";
import { ingressMetrics } from "./ingress-metrics.js";
import { createReceiver, type ReceiveParts } from "./receive.js";

export const secretA = "whsec_acme-main-MARKER-SECRET";
export const secretB = "whsec_bravo-main-MARKER-SECRET";

/** A migrated database on a real PostgreSQL with two tenants, a connection and an endpoint each. */
export interface TestHouse {
  ledger: Ledger;
  url: string;
  providers: Providers;
  /** Endpoint ids. */
  acme: string;
  bravo: string;
  documentSha256: string;
  stop(): Promise<void>;
}

export async function startHouse(): Promise<TestHouse> {
  const server = await startPostgres({ durable: false });
  const { url } = await createTestDatabase(server.url);
  await migrate(url);
  const ledger = new Ledger({ databaseUrl: url, encryptionKey: randomBytes(32).toString("base64") });
  const providers = createProviders();
  const ids: Record<string, string> = {};
  let documentSha256 = "";
  for (const [tenantId, secret] of [
    ["acme", secretA],
    ["bravo", secretB],
  ] as const) {
    await createTenant(ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
    await connect(ledger, tenantId, "main");
    ids[tenantId] = await endpointOf(ledger, tenantId, "main", secret);
    documentSha256 = await postgresDocumentStore(ledger).put(tenantId, Buffer.from("%PDF-1.4 test"));
  }
  return {
    ledger,
    url,
    providers,
    acme: ids.acme ?? "",
    bravo: ids.bravo ?? "",
    documentSha256,
    stop: async () => {
      await providers.close();
      await ledger.close();
      await server.stop();
    },
  };
}

export const connect = (ledger: Ledger, tenantId: string, connectionId: string): Promise<void> =>
  createConnection(ledger, {
    tenantId,
    connectionId,
    provider: "wesign",
    baseUrl: "http://127.0.0.1:9",
    credential: "wsk_test",
  });

export async function endpointOf(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  secret: string,
): Promise<string> {
  const { endpointId } = await createWebhookEndpoint(ledger, { tenantId, connectionId, scheme: "elchi", secret });
  return endpointId;
}

export interface TestIngress {
  url: string;
  port: number;
  lines: string[];
  handedOff: DueJob[];
  metrics(): Promise<string>;
  close(): Promise<void>;
}

export interface IngressSettings {
  ledger?: Ledger;
  handOff?: ReceiveParts["handOff"];
  ackTimeoutMs?: number;
  receiveTimeoutMs?: number;
  maxInFlight?: number;
  maxBytesInFlight?: number;
  endpointCacheMs?: number;
  bodyLimit?: number;
  now?: () => number;
}

/** The ingress on a real socket, its log and hand-offs kept. Endpoints aren't cached, so that changes count at once. */
export async function startIngress(house: TestHouse, settings: IngressSettings = {}): Promise<TestIngress> {
  const lines: string[] = [];
  const handedOff: DueJob[] = [];
  const logger = createLogger({ name: "test", level: "trace", destination: { write: (line) => lines.push(line) } });
  const registry = createMetrics("test");
  const metrics = ingressMetrics(registry);
  const ledger = settings.ledger ?? house.ledger;
  const remember = async (jobs: readonly DueJob[]) => {
    handedOff.push(...jobs);
    return { failed: 0 };
  };
  const app = buildIngress({
    receive: createReceiver({
      ledger,
      providerByName: house.providers.byName,
      handOff: settings.handOff ?? remember,
      logger,
      metrics,
      endpointCacheMs: settings.endpointCacheMs ?? 0,
      bodyLimit: settings.bodyLimit ?? 64 * 1024,
      ...(settings.now === undefined ? {} : { now: settings.now }),
    }),
    logger,
    registry,
    metrics,
    checks: [inboxCheck(ledger)],
    bodyLimit: settings.bodyLimit ?? 64 * 1024,
    receiveTimeoutMs: settings.receiveTimeoutMs ?? 5_000,
    ackTimeoutMs: settings.ackTimeoutMs ?? 5_000,
    maxInFlight: settings.maxInFlight ?? 200,
    maxBytesInFlight: settings.maxBytesInFlight ?? 64 * 1024 * 1024,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    port: Number(new URL(url).port),
    lines,
    handedOff,
    metrics: async () => (await registry.render()).body,
    close: async () => {
      await app.close();
    },
  };
}

export function signature(body: string | Uint8Array, secret: string, timestamp: string | number): string {
  const mac = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  return `t=${timestamp},v1=${mac}`;
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

/** Posts a body, correctly signed unless the headers say otherwise. */
export function deliver(
  ingress: TestIngress,
  endpointId: string,
  body: string | Uint8Array,
  options: { secret?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(`${ingress.url}/webhooks/${endpointId}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "elchi-signature": signature(body, options.secret ?? secretA, nowSeconds()),
      ...options.headers,
    },
    body,
  });
}

export interface EventFields {
  id?: string;
  type?: string;
  ref?: string;
  status?: string;
  metadata?: Record<string, string>;
}

/** A body as the provider sends it. */
export function eventBody(event: EventFields = {}): string {
  const status = event.status ?? "completed";
  return JSON.stringify({
    id: event.id ?? `evt_${randomUUID()}`,
    type: event.type ?? `signing_request.${status}`,
    created_at: "2026-11-30T00:00:00.000Z",
    data: {
      signing_request_id: event.ref ?? `sr_${randomUUID()}`,
      document_id: "doc_1",
      status,
      ...(event.metadata === undefined ? {} : { metadata: event.metadata }),
    },
  });
}

/** A planned SEND of acme. */
export async function planSend(house: TestHouse, tenantId = "acme"): Promise<string> {
  const operationId = newId();
  const outcome = await plan(house.ledger, {
    tenantId,
    operationId,
    intentKey: `intent-${operationId}`,
    approved: {
      action: "SEND",
      connectionId: "main",
      payload: neutralPayload.parse({
        documents: [{ sha256: house.documentSha256 }],
        signers: [{ email: "marker@example.com", role: "buyer", order: 1 }],
      }),
    },
    request: {},
    bodyDigest: Buffer.alloc(32),
  });
  if (outcome.kind !== "created") throw new Error(`expected created, got ${outcome.kind}`);
  return operationId;
}

/** IN_FLIGHT; returns the owner. */
export async function claim(house: TestHouse, operationId: string): Promise<string> {
  const owner = randomUUID();
  const [claimed] = await claimForSubmit(house.ledger, [
    { tenantId: "acme", operationId, owner, leaseMs: 60_000, actor: "test", reason: "claimed" },
  ]);
  if (claimed?.applied !== true) throw new Error("not claimed");
  return owner;
}

/** CONFIRMED with this reference, as its worker does it on the evidence that it knows. */
export async function confirmAs(
  house: TestHouse,
  operationId: string,
  owner: string,
  providerRef: string,
  evidenceNo = 0,
): Promise<void> {
  const observation = { kind: "accepted", ref: providerRef, httpStatus: 201 };
  const row = { tenantId: "acme", operationId, owner, evidenceNo, providerRef, observation } as const;
  const [confirmed] = await confirm(house.ledger, [
    {
      ...row,
      referenceSource: "answer",
      basis: "proof",
      shows: true,
      signingStatus: "SENT",
      actor: "test",
      reason: "accepted",
    },
  ]);
  if (confirmed?.applied !== true) throw new Error("not confirmed");
}

/** A SEND whose request the provider holds under this reference. */
export async function sentAs(house: TestHouse, providerRef: string): Promise<string> {
  const operationId = await planSend(house);
  await confirmAs(house, operationId, await claim(house, operationId), providerRef);
  return operationId;
}

export interface InboxRow {
  inbox_id: string;
  tenant_id: string;
  connection_id: string;
  provider_event_id: string;
  status: string;
  outcome: string | null;
  conflicting: boolean;
  weak_id: boolean;
  failures: number;
  due_now: boolean;
}

/** Everything in the inbox, in order of arrival. */
export const inbox = (house: TestHouse): Promise<InboxRow[]> => house.ledger.sql<InboxRow[]>`
  SELECT inbox_id, tenant_id, connection_id, provider_event_id, status, outcome, conflicting, weak_id, failures,
    COALESCE(due_at <= now(), false) AS due_now
  FROM webhook_inbox ORDER BY received_at, inbox_id`;

export const clearInbox = async (house: TestHouse): Promise<void> => {
  await house.ledger.sql.begin(async (sql) => {
    // Only what says that it is the retention job may.
    await sql`SET LOCAL countersign.retention = 'on'`;
    await sql`TRUNCATE webhook_inbox, webhook_body`;
  });
};

export function applyParts(house: TestHouse, more: Partial<ApplyParts> = {}): ApplyParts & { lines: string[] } {
  const lines: string[] = [];
  return {
    ledger: house.ledger,
    providerByName: house.providers.byName,
    handOff: async () => undefined,
    logger: createLogger({ name: "test", destination: { write: (line) => lines.push(line) } }),
    eventWaitMs: 60_000,
    ...more,
    lines,
  };
}

/** Applies what is due, in order of arrival. */
export async function applyDue(house: TestHouse, parts: ApplyParts): Promise<ApplyOutcome[]> {
  const outcomes: ApplyOutcome[] = [];
  for (const row of await inbox(house)) {
    if (!row.due_now) continue;
    outcomes.push(await applyInboxEntry(parts, { tenantId: row.tenant_id, inboxId: row.inbox_id }));
  }
  return outcomes;
}
