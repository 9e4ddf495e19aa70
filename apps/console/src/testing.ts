import { randomBytes } from "node:crypto";
import { Waiting } from "@countersign/api";
import { planningParts } from "@countersign/client/transaction";
import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import {
  addOperator,
  createConnection,
  createTenant,
  type DueJob,
  Ledger,
  migrate,
  postgresDocumentStore,
} from "@countersign/ledger";
import { migrateQueues, openQueues, type Queues } from "@countersign/queue";
import { createLogger, createMetrics, type Metrics } from "@countersign/runtime";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { session } from "./contract.js";
import { buildConsole } from "./server.js";
import { SessionCookies } from "./session-cookie.js";

/** Somebody who is logged in. */
export interface Login {
  cookie: string;
  csrf: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: Record<string, unknown>;
}

/** The console on a real socket over a real PostgreSQL, which also holds the queues; tenants `acme` and `bravo`. */
export class TestConsole {
  readonly server: PostgresServer;
  readonly databaseUrl: string;
  readonly ledger: Ledger;
  readonly queues: Queues;
  readonly url: string;
  readonly tokens: Record<"viewer" | "operator" | "bravo", string>;
  readonly logLines: string[];
  readonly metrics: Metrics;
  readonly handedOver: DueJob[];
  readonly cookies: SessionCookies;
  readonly #app: FastifyInstance;
  readonly #waiting: Waiting;

  private constructor(
    parts: Omit<TestConsole, "login" | "call" | "stop"> & { app: FastifyInstance; waiting: Waiting },
  ) {
    this.server = parts.server;
    this.databaseUrl = parts.databaseUrl;
    this.ledger = parts.ledger;
    this.queues = parts.queues;
    this.url = parts.url;
    this.tokens = parts.tokens;
    this.logLines = parts.logLines;
    this.metrics = parts.metrics;
    this.handedOver = parts.handedOver;
    this.cookies = parts.cookies;
    this.#app = parts.app;
    this.#waiting = parts.waiting;
  }

  static async start(): Promise<TestConsole> {
    const server = await startPostgres({ durable: false });
    const { url: databaseUrl } = await createTestDatabase(server.url);
    await migrate(databaseUrl);
    await migrateQueues(databaseUrl);
    const ledger = new Ledger({ databaseUrl, encryptionKey: randomBytes(32), maxConnections: 10 });
    for (const tenantId of ["acme", "bravo"]) {
      await createTenant(ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
      await createConnection(ledger, {
        tenantId,
        connectionId: "main",
        provider: "wesign",
        baseUrl: "http://127.0.0.1:9",
        credential: "wsk",
      });
    }
    const tokens = {
      viewer: (await addOperator(ledger, { name: "vera", role: "viewer" })).token,
      operator: (await addOperator(ledger, { name: "otto", role: "operator" })).token,
      bravo: (await addOperator(ledger, { name: "bo", role: "operator", tenants: ["bravo"] })).token,
    };
    const logLines: string[] = [];
    const logger = createLogger({ name: "console", destination: { write: (line) => void logLines.push(line) } });
    const metrics = createMetrics("console");
    const queues = openQueues({ databaseUrl, logger });
    await queues.ready(5_000);
    const waiting = new Waiting(ledger, logger);
    const handedOver: DueJob[] = [];
    const cookies = new SessionCookies(ledger.keyring.derive("console sessions"));
    const app = await buildConsole({
      ledger,
      documents: postgresDocumentStore(ledger),
      planning: planningParts(ledger),
      waiting,
      handOver: (jobs) => void handedOver.push(...jobs),
      logger,
      metrics,
      maxDocumentBytes: 1_024,
      quiescenceMs: 0,
      queues,
      cookies,
      everybody: undefined,
      sessionHours: 1,
      secureCookie: false,
      page: "/nowhere",
      checks: [],
    });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return new TestConsole({
      server,
      databaseUrl,
      ledger,
      queues,
      url,
      tokens,
      logLines,
      metrics,
      handedOver,
      cookies,
      app,
      waiting,
    });
  }

  async login(as: keyof TestConsole["tokens"]): Promise<Login> {
    const answer = await this.call("POST", "/console/session", { body: { token: this.tokens[as] } });
    const cookie = answer.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    return { cookie, csrf: session.parse(answer.body).csrf };
  }

  async call(
    method: string,
    path: string,
    options: { login?: Login; body?: object; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const { login, body } = options;
    const response = await fetch(new URL(path, this.url), {
      method,
      redirect: "manual",
      headers: {
        ...(login === undefined ? {} : { cookie: login.cookie, "x-countersign-csrf": login.csrf }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    const read: unknown = isJson && text !== "" ? JSON.parse(text) : {};
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: z.record(z.string(), z.unknown()).catch({}).parse(read),
    };
  }

  async stop(): Promise<void> {
    this.#waiting.stop();
    await this.#app.close();
    await this.queues.close();
    await this.ledger.close();
    await this.server.stop();
  }
}
