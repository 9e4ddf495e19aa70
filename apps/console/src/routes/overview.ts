import {
  countOpenTickets,
  countStates,
  listConsoleActions,
  listStandstills,
  movesOfLastHour,
  oldestOpen,
  toIso,
} from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { actionPage, overview } from "../contract.js";
import type { ConsoleDeps } from "../deps.js";
import { queueDepths } from "../queue-depths.js";
import { mayObserve, type WhoAsks } from "../who-asks.js";

const iso = (instant: string | null): string | null => (instant === null ? null : toIso(instant));

/** What is going on, and what was done here. */
export function overviewRoutes(app: FastifyInstance, deps: ConsoleDeps, who: WhoAsks): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const { ledger } = deps;
  typed.route({
    method: "GET",
    url: "/console/overview",
    schema: { querystring: z.strictObject({ tenant: z.string().optional() }), response: { 200: overview } },
    handler: async (request) => {
      const { operator } = await who.need(request);
      const { tenant } = request.query;
      if (tenant !== undefined) mayObserve(operator, tenant);
      const scope = tenant === undefined ? operator.tenants : [tenant];
      const [states, oldest, tickets, paused, minutes, queues] = await Promise.all([
        countStates(ledger, scope),
        oldestOpen(ledger, scope),
        countOpenTickets(ledger, scope),
        listStandstills(ledger, scope),
        movesOfLastHour(ledger, scope),
        queueDepths(deps.queues),
      ]);
      return {
        at: new Date().toISOString(),
        states: states.map(({ connectionId, ...state }) => ({ ...state, connection: connectionId })),
        oldest,
        tickets: tickets.map((each) => ({ ...each, nextDueAt: toIso(each.nextDueAt) })),
        paused: paused.map(({ connectionId, ...each }) => ({
          ...each,
          connection: connectionId,
          until: iso(each.until),
        })),
        minutes: minutes.map((each) => ({ ...each, minute: toIso(each.minute) })),
        queues,
      };
    },
  });
  typed.route({
    method: "GET",
    url: "/console/actions",
    schema: {
      querystring: z.strictObject({ tenant: z.string().optional(), cursor: z.uuid().optional() }),
      response: { 200: actionPage },
    },
    handler: async (request) => {
      const { operator } = await who.need(request);
      const { tenant, cursor } = request.query;
      if (tenant !== undefined) mayObserve(operator, tenant);
      const limit = 100;
      const rows = await listConsoleActions(ledger, {
        tenants: tenant === undefined ? operator.tenants : [tenant],
        ...(cursor === undefined ? {} : { cursor }),
        limit: limit + 1,
      });
      const page = rows.slice(0, limit);
      return {
        data: page.map((row) => ({ ...row, at: toIso(row.at) })),
        nextCursor: rows.length > limit ? (page.at(-1)?.actionId ?? null) : null,
      };
    },
  });
}
