import { randomUUID } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { ProviderError } from "../answer.js";
import { bodyBytes, jsonObject } from "../json-body.js";
import type { Parts } from "../parts.js";
import { setRateLimitHeaders } from "../wire.js";

/** Signing inside a customer's own page. Each call makes a new session; nothing else hangs on it here. */
export function embeddedRoutes(app: FastifyInstance, parts: Parts): void {
  app.post("/v1/embedded/sign-sessions", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    const { signing_request_id: id } = jsonObject(bodyBytes(request));
    if (typeof id !== "string") {
      throw new ProviderError(422, "invalid_signing_request_id", "The field signing_request_id is missing.");
    }
    const target = parts.world.get(request.workspace, id);
    return reply.code(201).send({ id: `ses_${randomUUID().replaceAll("-", "")}`, signing_request_id: target.id });
  });
}
