import multipart from "@fastify/multipart";
import Fastify, { type FastifyInstance } from "fastify";
import { ProviderError } from "./answer.js";
import { NotIdleError } from "./clock.js";
import { SimulatorConfigError } from "./config.js";
import type { Parts } from "./parts.js";
import { controlRoutes } from "./routes/control.js";
import { embeddedRoutes } from "./routes/embedded.js";
import { hookRoutes } from "./routes/hooks.js";
import { readRoutes } from "./routes/reads.js";
import { signingRequestRoutes } from "./routes/signing-requests.js";
import { templateRoutes } from "./routes/templates.js";
import type { Simulator } from "./simulator.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The workspace of the bearer key; empty on the control routes. */
    workspace: string;
  }
}

const MAX_JSON_BYTES = 4 * 1024 * 1024;

/** The HTTP face of a simulator. */
export async function buildServer(simulator: Simulator): Promise<FastifyInstance> {
  const app = Fastify({ logger: false, forceCloseConnections: true, bodyLimit: MAX_JSON_BYTES });
  app.removeAllContentTypeParsers();
  // The exact bytes: the hash of an instantiation covers them as they were sent.
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  await app.register(multipart, { limits: { fields: 100, files: 5, parts: 100, fieldSize: MAX_JSON_BYTES } });
  app.decorateRequest("workspace", "");
  setErrorAnswers(app);
  await app.register(async (scope) => controlRoutes(scope, simulator));
  await app.register(async (scope) => {
    authenticate(scope, simulator.parts);
    signingRequestRoutes(scope, simulator.parts);
    readRoutes(scope, simulator.parts);
    templateRoutes(scope, simulator.parts);
    hookRoutes(scope, simulator.parts);
    embeddedRoutes(scope, simulator.parts);
  });
  return app;
}

function authenticate(app: FastifyInstance, { config }: Parts): void {
  app.addHook("onRequest", async (request) => {
    const key = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
    const workspace = config.workspaces.find(({ keys }) => key !== undefined && keys.includes(key));
    if (workspace === undefined) throw new ProviderError(401, "unauthorized", "The key is not known.");
    request.workspace = workspace.name;
  });
}

function asProviderError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error;
  if (error instanceof SimulatorConfigError) return new ProviderError(422, "invalid_control", error.message);
  if (error instanceof NotIdleError) return new ProviderError(408, "not_idle", error.message);
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (status === 413) return new ProviderError(413, "too_large", "The body is too large.");
  if (status === 415) return new ProviderError(415, "unsupported_media_type", "This media type is not accepted.");
  if (typeof status === "number" && status >= 400 && status < 500) {
    return new ProviderError(status, "invalid_request", "The request cannot be read.");
  }
  return new ProviderError(500, "internal_error", "Something went wrong on our side.");
}

function setErrorAnswers(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => {
    // Nobody is there any more to tell.
    if (request.raw.socket.destroyed) return reply.hijack();
    const refusal = asProviderError(error);
    return reply
      .code(refusal.status)
      .headers({ ...refusal.headers })
      .send(refusal.body());
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: { code: "not_found", message: "There is no such endpoint." } }),
  );
}
