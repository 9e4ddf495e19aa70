import { noteSubject, notFound, toAnswer, toInboxEvent, toTicket } from "@countersign/api";
import {
  getHistory,
  getNearMisses,
  getOperation,
  getReferences,
  getRelated,
  knownReferences,
  listConsoleActions,
  listEventsOf,
  listTickets,
  openPayload,
  searchOperations,
  toIso,
} from "@countersign/ledger";
import { operationId, tenantId } from "@countersign/runtime";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { operationPageAnswer, revealAnswer, revealRequest, searchAnswer, searchRequest } from "../contract.js";
import type { ConsoleDeps } from "../deps.js";
import { mayAct, mayObserve, type WhoAsks } from "../who-asks.js";

const ofTenant = z.object({ tenant: tenantId });
const one = z.object({ tenant: tenantId, id: operationId });
const pageSize = 50;

/** Find an operation, and all that belongs to it. */
export function operationPages(app: FastifyInstance, deps: ConsoleDeps, who: WhoAsks): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const { ledger } = deps;
  typed.route({
    method: "POST",
    url: "/console/:tenant/search",
    schema: { params: ofTenant, body: searchRequest, response: { 200: searchAnswer } },
    handler: async (request) => {
      const { operator } = await who.need(request);
      const { tenant } = request.params;
      mayObserve(operator, tenant);
      noteSubject(request, { tenant });
      const { cursor, ...search } = request.body;
      const found = await searchOperations(ledger, tenant, search, {
        limit: pageSize + 1,
        ...(cursor === undefined ? {} : { cursor }),
      });
      const page = found.operations.slice(0, pageSize);
      return {
        as: found.as,
        data: page.map((each) => toAnswer(each)),
        nextCursor: found.operations.length > pageSize ? (page.at(-1)?.operationId ?? null) : null,
      };
    },
  });
  typed.route({
    method: "GET",
    url: "/console/:tenant/operations/:id",
    schema: { params: one, response: { 200: operationPageAnswer } },
    handler: async (request) => {
      const { operator } = await who.need(request);
      const { tenant, id } = request.params;
      mayObserve(operator, tenant);
      noteSubject(request, { tenant, operation: id });
      const operation = await getOperation(ledger, tenant, id);
      if (operation === undefined) throw notFound("operation");
      const [history, nearMisses, seen, known, events, related, tickets, actions] = await Promise.all([
        getHistory(ledger, tenant, id),
        getNearMisses(ledger, tenant, id),
        getReferences(ledger, tenant, id),
        knownReferences(ledger.sql, tenant, id),
        listEventsOf(ledger, tenant, id),
        getRelated(ledger, tenant, id),
        listTickets(ledger, tenant, 100, { status: "all", subjectId: id }),
        listConsoleActions(ledger, { tenants: [tenant], subjectId: id, limit: 100 }),
      ]);
      return {
        operation: toAnswer(operation, history, nearMisses),
        references: known.map(({ providerRef, role, status }) => ({
          reference: providerRef,
          role,
          status,
          source: seen.find((each) => each.providerRef === providerRef)?.source ?? null,
        })),
        events: events.map(toInboxEvent),
        related,
        tickets: tickets.map(toTicket),
        actions: actions.map(({ at, operator: by, action, why }) => ({ at: toIso(at), operator: by, action, why })),
      };
    },
  });
  typed.route({
    method: "POST",
    url: "/console/:tenant/operations/:id/reveal",
    schema: { params: one, body: revealRequest, response: { 200: revealAnswer } },
    handler: async (request) => {
      const { operator } = await who.need(request);
      const { tenant, id } = request.params;
      mayObserve(operator, tenant);
      mayAct(operator);
      noteSubject(request, { tenant, operation: id });
      if ((await getOperation(ledger, tenant, id)) === undefined) throw notFound("operation");
      const payload = await openPayload(ledger, tenant, id);
      return { payload: payload === undefined ? null : { ...payload } };
    },
  });
}
