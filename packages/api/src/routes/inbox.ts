import {
  type BulkReplayRow,
  inboxBulkReplayAnswer,
  inboxBulkReplayRequest,
  inboxDetail,
  inboxDiscardRequest,
  inboxPage,
  inboxQuery,
  inboxReplayAnswer,
  inboxReplayRequest,
} from "@countersign/client";
import {
  countOutcomes,
  describeEvent,
  dryRunReplay,
  type Replayed,
  replayMany,
  toInboxFilter,
} from "@countersign/client/transaction";
import { discardInbox, type InboxFilter, listInbox, PlanRefusedError } from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { ApiDeps } from "../deps.js";
import { badRequest, notFound } from "../problem.js";
import { toInboxEvent, toTicket } from "../to-answer.js";

const secured = { tags: ["inbox"], security: [{ apiKey: [] }] };
const byId = z.object({ id: z.uuid() });

/** Webhook events as they were stored, and what people do about those that nobody applies by themselves. */
export function inboxRoutes(app: FastifyInstance, deps: ApiDeps): void {
  readRoutes(app, deps);
  replayRoutes(app, deps);
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "POST",
    url: "/v1/inbox/:id/discard",
    schema: {
      summary: "End an event that nobody will apply; who and why stay with it",
      ...secured,
      params: byId,
      body: inboxDiscardRequest,
      response: { 204: z.null() },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      await discardInbox(deps.ledger, { tenantId, inboxId: request.params.id, ...request.body });
      return reply.code(204).send(null);
    },
  });
}

function readRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "GET",
    url: "/v1/inbox",
    schema: {
      summary: "Webhook events, the newest first",
      ...secured,
      querystring: inboxQuery,
      response: { 200: inboxPage },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const { cursor, limit, status, ...rest } = request.query;
      const statuses = typeof status === "string" ? [status] : status;
      const filter = toInboxFilter({ ...rest, ...(statuses === undefined ? {} : { status: statuses }) });
      const events = await listInbox(deps.ledger, tenantId, filter, {
        limit: limit + 1,
        ...(cursor === undefined ? {} : { cursor }),
      });
      const page = events.slice(0, limit);
      return {
        data: page.map(toInboxEvent),
        nextCursor: events.length > limit ? (page.at(-1)?.inboxId ?? null) : null,
      };
    },
  });
  typed.route({
    method: "GET",
    url: "/v1/inbox/:id",
    schema: {
      summary: "One event with its tickets, its request, and what a replay would do now; never its bytes",
      ...secured,
      params: byId,
      response: { 200: inboxDetail },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const { event, tickets, ...described } = await describeEvent(deps.ledger, deps.planning.provider, {
        tenantId,
        inboxId: request.params.id,
      });
      return { ...toInboxEvent(event), ...described, tickets: tickets.map(toTicket) };
    },
  });
}

function replayRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "POST",
    url: "/v1/inbox/:id/replay",
    schema: {
      summary: "Make an event due again; pressing twice is no error",
      ...secured,
      params: byId,
      body: inboxReplayRequest,
      response: { 200: inboxReplayAnswer },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      const inboxId = request.params.id;
      const { who } = request.body;
      const { rows } = await replay(deps, tenantId, { ids: [inboxId] }, { who, limit: 1 });
      const [row] = rows;
      if (row === undefined) throw notFound("event");
      const { reason } = row;
      if (row.outcome === "replayed") return { inboxId, replayed: true, reason };
      if (reason !== "body-erased") return { inboxId, replayed: false, reason };
      throw new PlanRefusedError(reason, "the bytes of this event are erased: nothing can be applied");
    },
  });
  typed.route({
    method: "POST",
    url: "/v1/inbox/replay",
    schema: {
      summary: "Make all events that match due again, or say per event what that would do",
      ...secured,
      body: inboxBulkReplayRequest,
      response: { 200: inboxBulkReplayAnswer },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      const { who, dryRun, limit, all, ...conditions } = request.body;
      const filter = toInboxFilter(conditions);
      const filtered = Object.keys(filter).length > 0;
      if (!filtered && all === undefined)
        throw badRequest("all", "is needed where no event is named and no condition given");
      if (filtered && all === true) throw badRequest("all", "takes no event and no condition beside it");
      const { rows, more } = dryRun
        ? await whatWouldHappen(deps, tenantId, filter, limit)
        : await replay(deps, tenantId, filter, { who, limit });
      return { dryRun, rows, counts: countOutcomes(rows), more };
    },
  });
}

async function whatWouldHappen(
  deps: ApiDeps,
  tenantId: string,
  filter: InboxFilter,
  limit: number,
): Promise<{ rows: BulkReplayRow[]; more: boolean }> {
  const { rows, more } = await dryRunReplay(deps.ledger, {
    tenantId,
    filter,
    limit,
    provider: deps.planning.provider,
  });
  return { rows: rows.map(({ event, preview }) => ({ inboxId: event.inboxId, ...preview })), more };
}

/** Makes events due again and hands them to their queue, after the commit. */
async function replay(
  deps: ApiDeps,
  tenantId: string,
  filter: InboxFilter,
  options: { who: string; limit: number },
): Promise<Replayed> {
  const done = await replayMany(deps.ledger, tenantId, filter, options);
  deps.handOver(
    done.replayed.map((subjectId) => ({
      queue: "webhook-apply",
      tenantId,
      kind: "inbox",
      subjectId,
      // A replay begins anew: no failures, no hand-overs.
      eventNo: 0,
      dispatches: 0,
    })),
  );
  return done;
}
