import { notFound, ProblemError } from "@countersign/api";
import { beginConsoleAction, endConsoleAction } from "@countersign/ledger";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { boardAllows, boardPath } from "./bull-board.js";
import type { ConsoleDeps } from "./deps.js";
import { carriesToken, fromOwnPage, reads } from "./same-site.js";
import { mayAct, type WhoAsks } from "./who-asks.js";

const csrfHeader = "x-countersign-csrf";

/** Requests that need no login: the page itself, logging in, and what monitoring asks. */
const open = (request: FastifyRequest): boolean => {
  const path = pathOf(request);
  return !(path.startsWith("/console/") || path.startsWith("/api/") || isBoard(path)) || path === "/console/session";
};

const pathOf = (request: FastifyRequest): string => request.url.split("?")[0] ?? "";
const isBoard = (path: string): boolean => path === boardPath || path.startsWith(`${boardPath}/`);

/** A search changes nothing; its text stands in a body only because an address must not stand in a URL. */
const onlyReads = (request: FastifyRequest): boolean =>
  reads.has(request.method) || request.routeOptions.url === "/console/:tenant/search";

/**
 * What every request passes: a login, for Bull Board the list of what may be done, for changes the page's own token, and
 * a line in the log of actions, which is written before anything is done.
 */
export function guard(app: FastifyInstance, deps: ConsoleDeps, who: WhoAsks): void {
  const begun = new WeakMap<FastifyRequest, string>();

  app.addHook("onRequest", async (request, reply) => {
    try {
      return await admit(request, reply);
    } catch (error) {
      // Bull Board's plugin answers errors in its own way, all of them as faults.
      if (!(error instanceof ProblemError) || !isBoard(pathOf(request))) throw error;
      return await reply.code(error.status).type("application/problem+json").send(JSON.stringify(error.body()));
    }
  });

  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const path = pathOf(request);
    if (!reads.has(request.method)) fromOwnPage(request);
    if (open(request)) return undefined;
    const asking = await who.find(request);
    if (asking === undefined) {
      // A person who opens the board is sent to the login; everybody else is told.
      if (isBoard(path) && request.method === "GET" && !path.startsWith(`${boardPath}/api`)) {
        return await reply.redirect("/login");
      }
      throw new ProblemError(401, "not-logged-in", "Log in first");
    }
    if (isBoard(path)) {
      if (asking.operator.tenants !== null) {
        throw new ProblemError(403, "forbidden", "The queues hold every tenant's jobs: only for who may see them all");
      }
      if (reads.has(request.method)) return undefined;
      mayAct(asking.operator);
      if (!boardAllows(request.method, path)) {
        throw new ProblemError(405, "not-allowed-here", "Jobs are made and ended by the ledger alone");
      }
      // Bull Board's page knows no token of ours: its requests are told by their origin alone.
      if (request.headers.origin === undefined) throw new ProblemError(403, "cross-site", "The origin is missing");
    } else if (!reads.has(request.method)) {
      carriesToken(request.headers[csrfHeader], (token) => deps.cookies.csrfMatches(asking.claims, token));
    }
    return undefined;
  }

  app.addHook("preHandler", async (request) => {
    if (open(request) || onlyReads(request) || request.is404) return;
    const { operator } = await who.need(request);
    const params = stringsOf(request.params);
    const body = stringsOf(request.body);
    const tenantId = tenantOf(request);
    if (tenantId !== null && operator.tenants !== null && !operator.tenants.includes(tenantId))
      throw notFound("tenant");
    const id = await beginConsoleAction(deps.ledger, {
      operatorId: operator.operatorId,
      operator: operator.name,
      role: operator.role,
      tenantId,
      action: `${request.method} ${request.routeOptions.url ?? "unknown"}`,
      subjectId: params.id ?? params.jobId ?? params.queueName ?? null,
      why: body.why ?? body.resolution ?? null,
    });
    begun.set(request, id);
  });

  app.addHook("onResponse", async (request, reply) => {
    const id = begun.get(request);
    if (id === undefined) return;
    try {
      await endConsoleAction(deps.ledger, id, reply.statusCode);
    } catch (error) {
      // That it was begun is written; how it ended is then in the ledger's own history alone.
      deps.logger.error({ err: error }, "the end of an action could not be recorded");
    }
  });
}

/** The tenant in a path of ours; null for the board. Read from the URL: the routes' own parameters know nothing of it. */
export function tenantOf(request: FastifyRequest): string | null {
  return /^\/(?:api|console)\/([a-z0-9][a-z0-9_-]{0,62})\//.exec(pathOf(request))?.[1] ?? null;
}

function stringsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const found: Record<string, string> = {};
  for (const [name, member] of Object.entries(value)) if (typeof member === "string") found[name] = member;
  return found;
}
