import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Metrics } from "./metrics.js";
import { safeError } from "./redaction.js";

/** One thing that must be true for a process to make progress: resolves when it is, rejects when it is not. */
export interface Check {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
  /** Deadline in milliseconds; 1000 when left out. A check that misses it is red. */
  readonly timeoutMs?: number;
}

/** A check's failure whose reason may be shown: a code, never text of another library. */
export class CheckFailed extends Error {
  override readonly name = "CheckFailed";
  readonly code: string;
  readonly safeMessage: string;
  constructor(code: string) {
    super(code);
    this.code = code;
    this.safeMessage = code;
  }
}

export interface CheckResult {
  readonly ok: boolean;
  readonly ms: number;
  /** A code: the error's own, its type, or `timeout`. */
  readonly reason?: string;
}

/** The body of `/readyz`. */
export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, CheckResult>>;
}

/** Runs all checks side by side, each under its own deadline, so that one hanging dependency hides no other. */
export async function readiness(checks: readonly Check[]): Promise<Readiness> {
  const results = await Promise.all(checks.map(async (check) => [check.name, await runCheck(check)] as const));
  return { ready: results.every(([, result]) => result.ok), checks: Object.fromEntries(results) };
}

async function runCheck(check: Check): Promise<CheckResult> {
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      controller.abort();
      reject(new CheckFailed("timeout"));
    }, check.timeoutMs ?? 1000);
  });
  try {
    await Promise.race([check.run(controller.signal), deadline]);
    return { ok: true, ms: elapsed() };
  } catch (error) {
    const { code, type } = safeError(error);
    return { ok: false, ms: elapsed(), reason: String(code ?? type) };
  } finally {
    clearTimeout(timer);
  }
}

export interface HealthOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly checks: readonly Check[];
  readonly metrics: Metrics;
}

export interface HealthServer {
  /** The port it listens on. */
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/healthz` (the process answers), `/readyz` (it makes progress; 503 if not) and `/metrics` for a worker. */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    if (request.method !== "GET" && request.method !== "HEAD") {
      sendJson(response, 405, { error: "method-not-allowed" });
      return;
    }
    answer(path, response, options).catch(() => {
      if (!response.headersSent) sendJson(response, 500, { error: "internal" });
      else response.destroy();
    });
  });
  await listen(server, options.port, options.host);
  return {
    port: boundPort(server),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(path: string, response: ServerResponse, options: HealthOptions): Promise<void> {
  switch (path) {
    case "/healthz":
      sendJson(response, 200, { ok: true });
      return;
    case "/readyz": {
      const state = await readiness(options.checks);
      sendJson(response, state.ready ? 200 : 503, state);
      return;
    }
    case "/metrics": {
      const { contentType, body } = await options.metrics.render();
      response.writeHead(200, { "content-type": contentType }).end(body);
      return;
    }
    default:
      sendJson(response, 404, { error: "not-found" });
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response
    .writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify(body));
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function boundPort(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the health server listens on no TCP port");
  return address.port;
}
