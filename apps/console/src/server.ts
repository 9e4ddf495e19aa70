import { apiServer, operatingRoutes } from "@countersign/api";
import cookie from "@fastify/cookie";
import type { FastifyInstance } from "fastify";
import { boardPath, bullBoard } from "./bull-board.js";
import type { ConsoleDeps } from "./deps.js";
import { guard } from "./guard.js";
import { servePage } from "./page.js";
import { operationPages } from "./routes/operations.js";
import { overviewRoutes } from "./routes/overview.js";
import { sessionRoutes } from "./routes/session.js";
import { securityHeaders } from "./security-headers.js";
import { tenantApi } from "./tenant-api.js";
import { WhoAsks } from "./who-asks.js";

/** The operators' server: the API for who is logged in, Bull Board, and the page. */
export async function buildConsole(deps: ConsoleDeps): Promise<FastifyInstance> {
  const app = apiServer(deps);
  const who = new WhoAsks(deps);
  await app.register(cookie);
  securityHeaders(app);
  guard(app, deps, who);
  await app.register(bullBoard(deps.queues), { prefix: boardPath });
  await tenantApi(app, deps, who);
  await servePage(app, deps.page);
  app.after(() => {
    sessionRoutes(app, deps, who);
    overviewRoutes(app, deps, who);
    operationPages(app, deps, who);
    operatingRoutes(app, deps);
  });
  await app.ready();
  return app;
}
