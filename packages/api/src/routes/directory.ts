import { connectionPage } from "@countersign/client";
import { listConnections, toIso } from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { ApiDeps } from "../deps.js";

const secured = { security: [{ apiKey: [] }] };

/** Connections of the caller's tenant. */
export function directoryRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "GET",
    url: "/v1/connections",
    schema: {
      summary: "Connections, without credentials",
      tags: ["connections"],
      ...secured,
      response: { 200: connectionPage },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const connections = await listConnections(deps.ledger, tenantId);
      return {
        data: connections.map((connection) => ({
          connection: connection.connectionId,
          provider: connection.provider,
          isDefault: connection.isDefault,
          lookupVerifiedAt: connection.lookupVerifiedAt === null ? null : toIso(connection.lookupVerifiedAt),
          pausedForMs: connection.pausedForMs,
          pauseReason: connection.pauseReason,
        })),
      };
    },
  });
}
