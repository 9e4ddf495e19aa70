import { type ApiDeps, apiRoutes, notFound, ProblemError } from "@countersign/api";
import type { ApiScope, ConsoleOperator } from "@countersign/ledger";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ConsoleDeps } from "./deps.js";
import { tenantOf } from "./guard.js";
import { mayAct, mayObserve, type WhoAsks } from "./who-asks.js";

/** What a role may do: nobody plans from here, and what rules a whole tenant is for its operators. */
const scopesOf: Record<ConsoleOperator["role"], readonly ApiScope[]> = {
  viewer: ["operations:read"],
  operator: ["operations:read", "reviews:write", "tenant:admin"],
};

/** The producers' API once more, under `/api/{tenant}`, for who is logged in instead of for a key. */
export async function tenantApi(app: FastifyInstance, deps: ConsoleDeps, who: WhoAsks): Promise<void> {
  const authenticate: ApiDeps["authenticate"] = async (request, scope) => {
    const { operator } = await who.need(request);
    const tenantId = tenantOf(request);
    if (tenantId === null) throw notFound("tenant");
    mayObserve(operator, tenantId);
    const scopes = scopesOf[operator.role];
    if (!scopes.includes(scope)) {
      mayAct(operator);
      throw new ProblemError(403, "forbidden", "Operations are planned with an API key, not from the console");
    }
    // Not found where there is no such tenant; read once per tenant and process.
    await deps.ledger.tenantKey(tenantId);
    return { tenantId, keyId: operator.operatorId, scopes: [...scopes] };
  };
  await app.register(
    async (scope) => {
      // Whoever is logged in decides, whatever name a request gives.
      scope.addHook("preValidation", async (request) => {
        const { operator } = await who.need(request);
        named(request, operator.name);
      });
      apiRoutes(scope, { ...deps, authenticate });
    },
    { prefix: "/api/:tenant" },
  );
}

function named(request: FastifyRequest, name: string): void {
  for (const part of [request.body, request.query]) {
    if (typeof part === "object" && part !== null && "who" in part) Object.assign(part, { who: name });
  }
}
