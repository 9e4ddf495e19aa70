import { ProblemError } from "@countersign/api";
import { beginConsoleAction, endConsoleAction } from "@countersign/ledger";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { boardAllows, boardPath } from "./bull-board.js";
import type { ConsoleDeps } from "./deps.js";
import { carriesToken, fromOwnPage, reads } from "./same-site.js";
import { mayAct, mayObserve, notLoggedIn, type WhoAsks } from "./who-asks.js";

const csrfHeader = "x-countersign-csrf";

/**
 * The pattern that the router matched; empty where there is no such route. Never the URL: a path has many spellings
 * (`/%71ueues` is `/queues`), and only the router knows them all.
 */
const routeOf = (request: FastifyRequest): string => request.routeOptions.url ?? "";
const isBoard = (route: string): boolean => route === boardPath || route.startsWith(`${boardPath}/`);

/** Requests that need no login: the page itself, logging in, and what monitoring asks. */
const open = (route: string): boolean =>
  !(route.startsWith("/console/") || route.startsWith("/api/") || isBoard(route)) || route === "/console/session";

/** A search changes nothing; its text stands in a body only because an address must not stand in a URL. */
const onlyReads = (request: FastifyRequest): boolean =>
  reads.has(request.method) || routeOf(request) === "/console/:tenant/search";

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
      if (!(error instanceof ProblemError) || !isBoard(routeOf(request))) throw error;
      return await reply.code(error.status).type("application/problem+json").send(JSON.stringify(error.body()));
    }
  });

  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const route = routeOf(request);
    if (!reads.has(request.method)) fromOwnPage(request);
    if (open(route)) return undefined;
    // The routes' own schemas know nothing of the tenant and would drop it.
    tenants.set(request, stringsOf(request.params).tenant ?? null);
    const asking = await who.find(request);
    if (asking === undefined) {
      // A person who opens the board is sent to the login; everybody else is told.
      if (isBoard(route) && request.method === "GET" && !route.startsWith(`${boardPath}/api`)) {
        return await reply.redirect("/login");
      }
      throw notLoggedIn();
    }
    if (isBoard(route)) {
      if (asking.operator.tenants !== null) {
        throw new ProblemError(403, "forbidden", "The queues hold every tenant's jobs: only for who may see them all");
      }
      if (reads.has(request.method)) return undefined;
      mayAct(asking.operator);
      if (!boardAllows(request.method, route, stringsOf(request.params).queueStatus)) {
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
    if (open(routeOf(request)) || onlyReads(request)) return;
    const { operator } = await who.need(request);
    const params = stringsOf(request.params);
    const body = stringsOf(request.body);
    const tenantId = tenantOf(request);
    if (tenantId !== null) mayObserve(operator, tenantId);
    const id = await beginConsoleAction(deps.ledger, {
      operatorId: operator.operatorId,
      operator: operator.name,
      role: operator.role,
      tenantId,
      action: `${request.method} ${routeOf(request)}`,
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

const tenants = new WeakMap<FastifyRequest, string | null>();

/** The tenant in the path of a guarded request; null where its route has none. */
export const tenantOf = (request: FastifyRequest): string | null => tenants.get(request) ?? null;

function stringsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const found: Record<string, string> = {};
  for (const [name, member] of Object.entries(value)) if (typeof member === "string") found[name] = member;
  return found;
}
