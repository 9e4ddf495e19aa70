import type { FastifyInstance } from "fastify";
import { ProviderError } from "../answer.js";
import { newSecret } from "../hook.js";
import { bodyBytes, jsonObject } from "../json-body.js";
import type { Parts } from "../parts.js";
import { setRateLimitHeaders } from "../wire.js";

/** Registration of endpoints for events. Each call makes a new hook, or a new secret. */
export function hookRoutes(app: FastifyInstance, parts: Parts): void {
  app.post("/v1/hooks", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    const { url } = jsonObject(bodyBytes(request));
    if (typeof url !== "string") throw new ProviderError(422, "invalid_url", "The field url is missing.");
    const hook = parts.webhooks.register(request.workspace, url);
    return reply.code(201).send({ id: hook.id, url: hook.url, secret: hook.secret });
  });

  app.post<{ Params: { id: string } }>("/v1/hooks/:id/rotate", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    const hook = parts.webhooks.get(request.workspace, request.params.id);
    hook.secret = newSecret();
    return { id: hook.id, url: hook.url, secret: hook.secret };
  });

  app.delete<{ Params: { id: string } }>("/v1/hooks/:id", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    parts.webhooks.remove(request.workspace, request.params.id);
    return reply.code(204).send();
  });
}
