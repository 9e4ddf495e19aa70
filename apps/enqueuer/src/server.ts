import { type ApiDeps, apiRoutes, apiServer, operatingRoutes } from "@countersign/api";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { jsonSchemaTransform } from "fastify-type-provider-zod";

/** The producers' API (DESIGN §9). */
export async function buildServer(deps: ApiDeps): Promise<FastifyInstance> {
  const app = apiServer(deps);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Countersign",
        version: "0.1.0",
        description: "Records what is to be sent, once, and answers whether it went out.",
      },
      components: { securitySchemes: { apiKey: { type: "http", scheme: "bearer", bearerFormat: "csk_…" } } },
    },
    transform: jsonSchemaTransform,
  });
  await app.register(swaggerUi, { routePrefix: "/docs", staticCSP: true });
  app.after(() => {
    apiRoutes(app, deps);
    app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
    operatingRoutes(app, deps);
  });
  await app.ready();
  return app;
}
