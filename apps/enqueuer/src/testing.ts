import { randomBytes } from "node:crypto";
import { Waiting } from "@countersign/api";
import { planningParts } from "@countersign/client/transaction";
import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import {
  createApiKey,
  createConnection,
  createTenant,
  type DueJob,
  Ledger,
  migrate,
  postgresDocumentStore,
} from "@countersign/ledger";
import { createLogger, createMetrics, type Metrics } from "@countersign/runtime";
import type { FastifyInstance } from "fastify";
import { authenticator } from "./authenticate.js";
import { buildServer } from "./server.js";

/** The API on a real socket over a real PostgreSQL, with tenants `acme` (one connection) and `bravo`. */
export class TestApi {
  readonly server: PostgresServer;
  readonly ledger: Ledger;
  readonly url: string;
  readonly keys: Record<string, string>;
  readonly logLines: string[];
  readonly metrics: Metrics;
  readonly handedOver: DueJob[];
  readonly #app: FastifyInstance;
  readonly #waiting: Waiting;

  private constructor(parts: {
    server: PostgresServer;
    ledger: Ledger;
    url: string;
    keys: Record<string, string>;
    logLines: string[];
    metrics: Metrics;
    handedOver: DueJob[];
    app: FastifyInstance;
    waiting: Waiting;
  }) {
    this.server = parts.server;
    this.ledger = parts.ledger;
    this.url = parts.url;
    this.keys = parts.keys;
    this.logLines = parts.logLines;
    this.metrics = parts.metrics;
    this.handedOver = parts.handedOver;
    this.#app = parts.app;
    this.#waiting = parts.waiting;
  }

  static async start({ quiescenceMs = 0 } = {}): Promise<TestApi> {
    const server = await startPostgres({ durable: false });
    const { url: databaseUrl } = await createTestDatabase(server.url);
    await migrate(databaseUrl);
    const ledger = new Ledger({ databaseUrl, encryptionKey: randomBytes(32), maxConnections: 20 });
    const keys: Record<string, string> = {};
    for (const tenantId of ["acme", "bravo", "charlie"]) {
      await createTenant(ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
      const ids = tenantId === "charlie" ? ["one", "two"] : ["main"];
      for (const connectionId of ids) {
        await createConnection(ledger, {
          tenantId,
          connectionId,
          provider: "wesign",
          baseUrl: "http://127.0.0.1:9",
          credential: "wsk",
        });
      }
      keys[tenantId] = (await createApiKey(ledger, tenantId, "test")).key;
    }
    keys.reader = (await createApiKey(ledger, "acme", "reader", ["operations:read"])).key;
    keys.reviewer = (await createApiKey(ledger, "acme", "reviewer", ["operations:read", "reviews:write"])).key;
    keys.admin = (await createApiKey(ledger, "acme", "admin", ["operations:read", "tenant:admin"])).key;
    const logLines: string[] = [];
    const logger = createLogger({ name: "enqueuer", destination: { write: (line) => void logLines.push(line) } });
    const metrics = createMetrics("enqueuer");
    const handedOver: DueJob[] = [];
    const waiting = new Waiting(ledger, logger);
    const app = await buildServer({
      ledger,
      documents: postgresDocumentStore(ledger),
      planning: planningParts(ledger),
      authenticate: authenticator(ledger),
      waiting,
      handOver: (jobs) => void handedOver.push(...jobs),
      checks: [],
      logger,
      metrics,
      maxDocumentBytes: 20_000,
      quiescenceMs,
    });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return new TestApi({ server, ledger, url, keys, logLines, metrics, handedOver, app, waiting });
  }

  async call(
    method: string,
    path: string,
    options: { key?: string | null; body?: string | Uint8Array; type?: string; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
    const key = options.key === undefined ? this.keys.acme : options.key;
    const response = await fetch(new URL(path, this.url), {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(options.body === undefined ? {} : { "content-type": options.type ?? "application/json" }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: options.body }),
    });
    const text = await response.text();
    const body: unknown = text === "" ? {} : JSON.parse(text);
    return { status: response.status, headers: response.headers, body: isRecord(body) ? body : { value: body } };
  }

  plan(body: object, headers: Record<string, string> = {}, key?: string) {
    return this.call("POST", "/v1/operations", {
      body: JSON.stringify(body),
      headers,
      ...(key === undefined ? {} : { key }),
    });
  }

  async upload(bytes: Uint8Array | string = "%PDF-1.4 a contract", key?: string): Promise<string> {
    const { body } = await this.call("PUT", "/v1/documents", {
      body: bytes,
      type: "application/pdf",
      ...(key === undefined ? {} : { key }),
    });
    return String(body.sha256);
  }

  /** Rows of everything that a refused request must not have touched. */
  async counts(): Promise<Record<string, number>> {
    const [row] = await this.ledger.sql<Record<string, number>[]>`
      SELECT (SELECT count(*) FROM signing_operation)::int AS operations, (SELECT count(*) FROM approved_payload)::int AS payloads,
        (SELECT count(*) FROM operation_event)::int AS events, (SELECT count(*) FROM document)::int AS documents,
        (SELECT count(*) FROM ticket)::int AS tickets`;
    return row ?? {};
  }

  async stop(): Promise<void> {
    this.#waiting.stop();
    await this.#app.close();
    await this.ledger.close();
    await this.server.stop();
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
