import {
  ticketDecideAnswer,
  ticketDecideRequest,
  ticketDetail,
  ticketPage,
  ticketResolveRequest,
} from "@countersign/client";
import { openDecisions, voidRequestOf } from "@countersign/client/transaction";
import {
  closeTicket,
  decideDuplicate,
  getOperation,
  getTicket,
  knownReferences,
  listTickets,
  NotFoundError,
  type Ticket,
  ticketKinds,
  toIso,
  waitersOf,
} from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { ApiDeps } from "../deps.js";
import { handOverPlanned } from "../hand-over-planned.js";
import { notFound, ProblemError } from "../problem.js";
import { toReference, toTicket } from "../to-answer.js";

const secured = { tags: ["tickets"], security: [{ apiKey: [] }] };
const byId = z.object({ id: z.uuid() });

/** What somebody has been asked to look at, and what they decided. */
export function ticketRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "GET",
    url: "/v1/tickets",
    schema: {
      summary: "Tickets, the most urgent first; closed ones the last closed first",
      ...secured,
      querystring: z.strictObject({
        status: z.enum(["open", "closed", "all"]).default("open"),
        kind: z.enum(ticketKinds).optional(),
        cursor: z.uuid().optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      response: { 200: ticketPage },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const { status, kind, cursor, limit } = request.query;
      const tickets = await listTickets(deps.ledger, tenantId, limit + 1, {
        status,
        ...(kind === undefined ? {} : { kind }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      const page = tickets.slice(0, limit);
      return { data: page.map(toTicket), nextCursor: tickets.length > limit ? (page.at(-1)?.ticketId ?? null) : null };
    },
  });
  typed.route({
    method: "GET",
    url: "/v1/tickets/:id",
    schema: {
      summary: "One ticket, with what its decision needs",
      ...secured,
      params: byId,
      response: { 200: ticketDetail },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const found = await getTicket(deps.ledger, tenantId, request.params.id);
      if (found === undefined) throw notFound("ticket");
      return { ...toTicket(found), operation: await about(deps, tenantId, found) };
    },
  });
  decisionRoutes(app, deps);
}

function decisionRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "POST",
    url: "/v1/tickets/:id/resolve",
    schema: {
      summary: "Close a ticket, with a resolution",
      ...secured,
      params: byId,
      body: ticketResolveRequest,
      response: { 204: z.null() },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      await closeTicket(deps.ledger, { tenantId, ticketId: request.params.id, ...request.body });
      return reply.code(204).send(null);
    },
  });
  typed.route({
    method: "POST",
    url: "/v1/tickets/:id/decide",
    schema: {
      summary: "Decide a duplicate ticket: which reference stays",
      ...secured,
      params: byId,
      body: ticketDecideRequest,
      response: { 200: ticketDecideAnswer },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      const ticket = await getTicket(deps.ledger, tenantId, request.params.id);
      if (ticket === undefined) throw notFound("ticket");
      if (ticket.kind !== "duplicate") {
        throw new ProblemError(422, "ticket-unsuitable", `a ${ticket.kind} ticket is not decided this way`);
      }
      const { keep, who, why, evidenceNo } = request.body;
      const decided = await decideDuplicate(deps.ledger, {
        tenantId,
        ticketId: ticket.ticketId,
        ...(keep === null ? {} : { keep }),
        evidenceNo,
        who,
        why,
        basis: "person",
        voidRequest: voidRequestOf(await providerOf(deps, tenantId, ticket.subjectId)),
      });
      handOverPlanned(deps, tenantId, decided.planned);
      const planned = decided.planned.map(({ operationId }) => operationId);
      return { operationId: decided.operationId, planned, leftAlone: decided.leftAlone };
    },
  });
}

async function providerOf(deps: ApiDeps, tenantId: string, operationId: string) {
  const operation = z.uuid().safeParse(operationId).success
    ? await getOperation(deps.ledger, tenantId, operationId)
    : undefined;
  if (operation === undefined) throw new NotFoundError("operation");
  const connections = await deps.planning.connections(tenantId);
  const connection = connections.find((each) => each.connectionId === operation.connectionId);
  const provider = connection === undefined ? undefined : deps.planning.provider(connection.provider);
  if (provider === undefined)
    throw new ProblemError(422, "provider-unknown", "This build has no adapter for the provider");
  return provider;
}

async function about(deps: ApiDeps, tenantId: string, ticket: Ticket) {
  if (ticket.subjectKind !== "operation") return null;
  const operation = await getOperation(deps.ledger, tenantId, ticket.subjectId);
  if (operation === undefined) return null;
  const [references, waiting] = await Promise.all([
    knownReferences(deps.ledger.sql, tenantId, ticket.subjectId),
    waitersOf(deps.ledger, tenantId, ticket.subjectId),
  ]);
  const { action, state, evidenceNo, quietFrom } = operation;
  const open = { ticketKind: ticket.kind, action, state, references, waiting: waiting.length };
  return {
    action,
    state,
    evidenceNo,
    references: references.map(toReference),
    waiting: waiting.map((each) => ({ operationId: each.operationId, action: each.action, relation: each.relation })),
    decidableFrom:
      state !== "NEEDS_REVIEW" || quietFrom === null
        ? null
        : new Date(Date.parse(toIso(quietFrom)) + deps.quiescenceMs).toISOString(),
    decisions: ticket.resolvedAt === null ? openDecisions(open) : [],
  };
}
