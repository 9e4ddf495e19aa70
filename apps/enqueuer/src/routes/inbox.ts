import {
  inboxBulkReplayAnswer,
  inboxBulkReplayRequest,
  inboxDetail,
  inboxDiscardRequest,
  inboxPage,
  inboxQuery,
  inboxReplayAnswer,
  inboxReplayRequest,
} from "@countersign/client";
import { dryRunReplay, whyNotReplayed, withReplayable } from "@countersign/client/transaction";
import {
  discardInbox,
  getInboxEvent,
  type InboxEvent,
  type InboxFilter,
  listInbox,
  listTickets,
  PlanRefusedError,
  readSigning,
  replayable,
  replayInbox,
} from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { EnqueuerDeps } from "../deps.js";
import { badRequest, notFound } from "../problem.js";
import { toInboxEvent, toTicket } from "../to-answer.js";

const secured = { tags: ["inbox"], security: [{ apiKey: [] }] };
const byId = z.object({ id: z.uuid() });

/** Webhook events as they were stored, and what people do about those that nobody applies by themselves. */
export function inboxRoutes(app: FastifyInstance, deps: EnqueuerDeps): void {
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
      const { tenantId } = await deps.authenticate(request.headers.authorization, "reviews:write");
      await discardInbox(deps.ledger, { tenantId, inboxId: request.params.id, ...request.body });
      return reply.code(204).send(null);
    },
  });
}

function readRoutes(app: FastifyInstance, deps: EnqueuerDeps): void {
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
      const { tenantId } = await deps.authenticate(request.headers.authorization, "operations:read");
      const { cursor, limit, status, ...rest } = request.query;
      const statuses = typeof status === "string" ? [status] : status;
      const filter = toFilter({ ...rest, ...(statuses === undefined ? {} : { status: statuses }) });
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
      const { tenantId } = await deps.authenticate(request.headers.authorization, "operations:read");
      return await detailOf(deps, tenantId, request.params.id);
    },
  });
}

async function detailOf(deps: EnqueuerDeps, tenantId: string, inboxId: string): Promise<z.output<typeof inboxDetail>> {
  const { rows } = await dryRunReplay(deps.ledger, {
    tenantId,
    filter: { ids: [inboxId] },
    limit: 1,
    provider: deps.planning.provider,
  });
  const [row] = rows;
  if (row === undefined) throw notFound("event");
  const { connectionId, providerRef } = row.event;
  const [tickets, standing] = await Promise.all([
    listTickets(deps.ledger, tenantId, 100, { status: "all", subjectId: inboxId }),
    providerRef === null ? undefined : readSigning(deps.ledger.sql, { tenantId, connectionId, providerRef }),
  ]);
  return {
    ...toInboxEvent(row.event),
    request:
      providerRef === null
        ? null
        : {
            reference: providerRef,
            status: standing?.status ?? null,
            operationId: standing?.operationId ?? null,
          },
    tickets: tickets.map(toTicket),
    replay: row.preview,
  };
}

function replayRoutes(app: FastifyInstance, deps: EnqueuerDeps): void {
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
      const { tenantId } = await deps.authenticate(request.headers.authorization, "reviews:write");
      const inboxId = request.params.id;
      const replayed = await replay(deps, tenantId, { ids: [inboxId] }, { who: request.body.who, limit: 1 });
      if (replayed.length > 0) return { inboxId, replayed: true, reason: null };
      const event = await getInboxEvent(deps.ledger, tenantId, inboxId);
      if (event === undefined) throw notFound("event");
      const reason = whyNotReplayed(event) ?? "busy";
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
      const { tenantId } = await deps.authenticate(request.headers.authorization, "reviews:write");
      const { who, dryRun, limit, all, ids, ...conditions } = request.body;
      const filter = { ...toFilter(conditions), ...(ids === undefined ? {} : { ids }) };
      const filtered = Object.keys(filter).length > 0;
      if (!filtered && all === undefined)
        throw badRequest("all", "is needed where no event is named and no condition given");
      if (filtered && all === true) throw badRequest("all", "takes no event and no condition beside it");
      const { rows, more } = dryRun
        ? await whatWouldHappen(deps, tenantId, filter, limit)
        : await replayMany(deps, tenantId, filter, { who, limit });
      const counts: Record<string, number> = {};
      for (const { outcome } of rows) counts[outcome] = (counts[outcome] ?? 0) + 1;
      return { dryRun, rows, counts, more };
    },
  });
}

type BulkAnswer = Pick<z.output<typeof inboxBulkReplayAnswer>, "rows" | "more">;

async function whatWouldHappen(
  deps: EnqueuerDeps,
  tenantId: string,
  filter: InboxFilter,
  limit: number,
): Promise<BulkAnswer> {
  const { rows, more } = await dryRunReplay(deps.ledger, {
    tenantId,
    filter,
    limit,
    provider: deps.planning.provider,
  });
  return { rows: rows.map(({ event, preview }) => ({ inboxId: event.inboxId, ...preview })), more };
}

async function replayMany(
  deps: EnqueuerDeps,
  tenantId: string,
  filter: InboxFilter,
  options: { who: string; limit: number },
): Promise<BulkAnswer> {
  const replayed = await replay(deps, tenantId, filter, options);
  const row = { reason: null, status: null, evidenceFor: null };
  const rows: BulkAnswer["rows"] = replayed.map((inboxId) => ({ inboxId, outcome: "replayed", ...row }));
  const cut = replayed.length === options.limit;
  if (filter.ids === undefined) return { rows, more: cut && (await someLeft(deps, tenantId, filter)) };
  const done = new Set(replayed);
  const others = await whyNot(
    deps,
    tenantId,
    filter,
    [...new Set(filter.ids)].filter((id) => !done.has(id)),
  );
  const left = others.filter(({ reason }) => reason === "busy");
  const shown = cut ? others.filter(({ reason }) => reason !== "busy") : others;
  return {
    rows: [...rows, ...shown.map((each) => ({ ...row, outcome: "not-replayed" as const, ...each }))],
    more: cut && left.length > 0,
  };
}

/** Why events that somebody named were not made due again; those of another tenant, or that don't match, are left out. */
async function whyNot(
  deps: EnqueuerDeps,
  tenantId: string,
  filter: InboxFilter,
  ids: readonly string[],
): Promise<{ inboxId: string; reason: string }[]> {
  if (ids.length === 0) return [];
  const events = await listInbox(deps.ledger, tenantId, { ...filter, ids }, { limit: ids.length });
  return events.reverse().map((event) => ({ inboxId: event.inboxId, reason: whyNotReplayed(event) ?? "busy" }));
}

async function someLeft(deps: EnqueuerDeps, tenantId: string, filter: InboxFilter): Promise<boolean> {
  const status = (filter.status ?? replayable).filter((each) => replayable.includes(each));
  return (await listInbox(deps.ledger, tenantId, { ...withReplayable(filter), status }, { limit: 1 })).length > 0;
}

/** Makes events due again and hands them to their queue, after the commit. */
async function replay(
  deps: EnqueuerDeps,
  tenantId: string,
  filter: InboxFilter,
  options: { who: string; limit: number },
): Promise<string[]> {
  const replayed = await replayInbox(deps.ledger, tenantId, filter, options);
  deps.handOver(
    replayed.map((subjectId) => ({
      queue: "webhook-apply",
      tenantId,
      kind: "inbox",
      subjectId,
      // A replay begins anew: no failures, no hand-overs.
      eventNo: 0,
      dispatches: 0,
    })),
  );
  return replayed;
}

/** The conditions as the ledger names them. */
function toFilter(conditions: {
  status?: InboxEvent["status"][] | undefined;
  connection?: string | undefined;
  endpoint?: string | undefined;
  type?: string | undefined;
  reason?: string | undefined;
  reference?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}): InboxFilter {
  const { status, connection, endpoint, type, reason, reference, since, until } = conditions;
  return {
    ...(status === undefined ? {} : { status }),
    ...(connection === undefined ? {} : { connectionId: connection }),
    ...(endpoint === undefined ? {} : { endpointId: endpoint }),
    ...(type === undefined ? {} : { eventType: type }),
    ...(reason === undefined ? {} : { outcome: reason }),
    ...(reference === undefined ? {} : { providerRef: reference }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}
