import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ApiDeps } from "./deps.js";

/** Whom a request is about, for its line in the log. */
export interface Subject {
  tenant?: string;
  operation?: string;
}

const subjects = new WeakMap<FastifyRequest, Subject>();

/** Adds to what the request's line will say. */
export function noteSubject(request: FastifyRequest, subject: Subject): void {
  subjects.set(request, { ...subjects.get(request), ...subject });
}

/** Asked too often to be worth a line. */
const quiet = new Set(["/healthz", "/readyz", "/metrics"]);

/** One line per request: method, route pattern, status, time, tenant, operation. No URL, query, address, header, body. */
export function accessLog(app: FastifyInstance, deps: Pick<ApiDeps, "logger" | "metrics">): void {
  const requests = deps.metrics.histogram({
    name: "countersign_http_request_seconds",
    help: "Time of a request, by route pattern and status",
    labels: ["method", "route", "status"],
  });
  app.addHook("onResponse", async (request, reply) => {
    const route = request.routeOptions.url ?? "unknown";
    const { method } = request;
    requests.observe({ method, route, status: String(reply.statusCode) }, reply.elapsedTime / 1_000);
    if (quiet.has(route)) return;
    deps.logger.info(
      { method, route, statusCode: reply.statusCode, ms: Math.round(reply.elapsedTime), ...subjects.get(request) },
      "request",
    );
  });
}
