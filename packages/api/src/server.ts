import { randomUUID } from "node:crypto";
import { parseStrictJson, readiness } from "@countersign/runtime";
import fastify, { type FastifyError, type FastifyInstance } from "fastify";
import {
  hasZodFastifySchemaValidationErrors,
  isResponseSerializationError,
  serializerCompiler,
  validatorCompiler,
} from "fastify-type-provider-zod";
import { accessLog } from "./access-log.js";
import type { ApiDeps } from "./deps.js";
import { invalid, notFound, ProblemError, toProblem } from "./problem.js";
import { directoryRoutes } from "./routes/directory.js";
import { documentRoutes } from "./routes/documents.js";
import { inboxRoutes } from "./routes/inbox.js";
import { operationRoutes } from "./routes/operations.js";
import { reviewRoutes } from "./routes/reviews.js";
import { ruleRoutes } from "./routes/rules.js";
import { ticketRoutes } from "./routes/tickets.js";

const jsonBodyLimit = 1_048_576;

/** Fastify's own refusals, in our words. */
const frameworkCodes: Record<string, [status: number, code: string, title: string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [413, "too-large", "The body is too large"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, "unsupported-media-type", "This Content-Type is not accepted here"],
  FST_ERR_CTP_EMPTY_JSON_BODY: [400, "bad-request", "The body is empty"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, "bad-request", "Content-Length does not match the body"],
};

function fromFramework(error: FastifyError): ProblemError | undefined {
  if (hasZodFastifySchemaValidationErrors(error)) {
    const errors = error.validation.map((issue) => ({
      field:
        `${error.validationContext === "body" ? "" : `${error.validationContext ?? ""}.`}${issue.instancePath.split("/").filter(Boolean).join(".")}` ||
        "body",
      message: issue.message ?? "is not valid",
    }));
    return invalid(errors);
  }
  const known = frameworkCodes[error.code];
  if (known !== undefined) return new ProblemError(known[0], known[1], known[2]);
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new ProblemError(error.statusCode, "bad-request", "The request could not be read");
  }
  return undefined;
}

/** A server that speaks as every one of ours does: strict JSON in, problems of RFC 9457 out, one log line per request. */
export function apiServer(deps: Pick<ApiDeps, "logger" | "metrics" | "maxDocumentBytes">): FastifyInstance {
  const app = fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: jsonBodyLimit,
    requestTimeout: 60_000,
    connectionTimeout: 0,
    keepAliveTimeout: 30_000,
    forceCloseConnections: "idle",
    routerOptions: { maxParamLength: 200 },
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) =>
    parseStrictJson(body),
  );
  app.addContentTypeParser(
    "application/pdf",
    { parseAs: "buffer", bodyLimit: deps.maxDocumentBytes },
    async (_request: unknown, body: Buffer) => body,
  );
  accessLog(app, deps);
  errors(app, deps);
  return app;
}

/** Everything that may be asked or done, as {@link ApiDeps.authenticate} allows it (DESIGN §9). */
export function apiRoutes(app: FastifyInstance, deps: ApiDeps): void {
  documentRoutes(app, deps);
  operationRoutes(app, deps);
  reviewRoutes(app, deps);
  ticketRoutes(app, deps);
  inboxRoutes(app, deps);
  ruleRoutes(app, deps);
  directoryRoutes(app, deps);
}

/** `/healthz`, `/readyz`, `/metrics`. */
export function operatingRoutes(app: FastifyInstance, deps: Pick<ApiDeps, "checks" | "metrics">): void {
  const hidden = { schema: { hide: true } };
  app.get("/healthz", hidden, () => ({ ok: true }));
  app.get("/readyz", hidden, async (_request, reply) => {
    const state = await readiness(deps.checks);
    return reply.code(state.ready ? 200 : 503).send(state);
  });
  app.get("/metrics", hidden, async (_request, reply) => {
    const { contentType, body } = await deps.metrics.render();
    return reply.type(contentType).send(body);
  });
}

function errors(app: FastifyInstance, deps: Pick<ApiDeps, "logger">): void {
  app.setNotFoundHandler(() => {
    throw notFound("route");
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const found = toProblem(error) ?? fromFramework(error);
    const problem =
      found ?? new ProblemError(500, "internal", "Something went wrong here", { instance: `urn:uuid:${request.id}` });
    if (problem.status >= 500) {
      const cause = isResponseSerializationError(error) ? { reason: "response-shape" } : {};
      deps.logger.error(
        { err: error, requestId: request.id, route: request.routeOptions.url ?? "unknown", ...cause },
        "request failed",
      );
    }
    return reply
      .code(problem.status)
      .headers(problem.headers)
      .type("application/problem+json")
      .send(JSON.stringify(problem.body()));
  });
}
