import { operation, operationPage, operationRequest, planAnswer, stateName } from "@countersign/client";
import {
  type ApiScope,
  type Caller,
  getHistory,
  getNearMisses,
  getOperation,
  isResolved,
  knownReferences,
  listOperations,
  type OperationView,
  toIso,
} from "@countersign/ledger";
import { actions, intentKey, operationId } from "@countersign/runtime";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { noteSubject } from "../access-log.js";
import type { ApiDeps } from "../deps.js";
import { intentKeyOf, planOperation } from "../plan-operation.js";
import { notFound } from "../problem.js";
import { toAnswer, toReference } from "../to-answer.js";
import { waitSecondsOf } from "../wait.js";

const byId = z.object({ id: operationId });

const listQuery = z.strictObject({
  state: stateName.optional(),
  intentKey: intentKey.optional(),
  action: z.enum(actions).optional(),
  connection: z.string().max(63).optional(),
  cursor: operationId.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});

/** Who may decide sees what there is to decide on. */
const reviewScope = "reviews:write" satisfies ApiScope;

const secured = { tags: ["operations"], security: [{ apiKey: [] }] };

const traceparentIn = ({ headers: { traceparent } }: FastifyRequest): string | undefined =>
  typeof traceparent === "string" ? traceparent : undefined;

/** Resolves when the client hangs up. */
function goneSignal(request: FastifyRequest): AbortSignal {
  const controller = new AbortController();
  request.socket.once("close", () => controller.abort());
  return controller.signal;
}

async function find(deps: ApiDeps, tenantId: string, id: string): Promise<OperationView> {
  const found = await getOperation(deps.ledger, tenantId, id);
  if (found === undefined) throw notFound("operation");
  return found;
}

/** Waits where `Prefer: wait` asks for it, then reads the operation with its history. */
async function answerOf(
  deps: ApiDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { tenantId, scopes }: Caller,
  id: string,
) {
  const seconds = waitSecondsOf(request.headers.prefer);
  let found = await find(deps, tenantId, id);
  if (seconds > 0) {
    reply.header("preference-applied", `wait=${seconds}`);
    if (!isResolved(found.state)) {
      await deps.waiting.until(found, seconds, goneSignal(request));
      found = await find(deps, tenantId, id);
    }
  }
  const [history, nearMisses] = await Promise.all([
    getHistory(deps.ledger, tenantId, id),
    getNearMisses(deps.ledger, tenantId, id),
  ]);
  const answer = toAnswer(found, history, nearMisses);
  if (!scopes.includes(reviewScope)) return answer;
  const references = await knownReferences(deps.ledger.sql, tenantId, id);
  return { ...answer, references: references.map(toReference) };
}

/** Plan, read, list (DESIGN §9). */
export function operationRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const plans = deps.metrics.counter({
    name: "countersign_plans_total",
    help: "Answers of POST /v1/operations, by outcome",
    labels: ["outcome"],
  });
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.route({
    method: "POST",
    url: "/v1/operations",
    schema: {
      summary: "Record an intent, once",
      ...secured,
      body: operationRequest,
      response: { 200: planAnswer, 201: planAnswer },
    },
    handler: async (request, reply) => {
      const caller = await deps.authenticate(request, "operations:write");
      const { tenantId } = caller;
      noteSubject(request, { tenant: tenantId });
      const key = intentKeyOf(request.headers["idempotency-key"], request.body.intentKey);
      const outcome = await planOperation(deps, tenantId, key, request.body, traceparentIn(request));
      const id = outcome.operation.operationId;
      noteSubject(request, { operation: id });
      plans.inc({ outcome: outcome.kind });
      const answer = await answerOf(deps, request, reply, caller, id);
      reply.header("location", `/v1/operations/${id}`);
      if (outcome.kind === "created") {
        reply.code(201);
        return { ...answer, alsoPlanned: outcome.alsoPlanned.map((planned) => planned.operationId) };
      }
      reply.code(200).header("idempotent-replayed", "true");
      return {
        ...answer,
        duplicate: outcome.byAnother,
        firstRequestedBy: outcome.firstRequestedBy,
        firstRequestedAt: toIso(outcome.firstRequestedAt),
      };
    },
  });
  typed.route({
    method: "GET",
    url: "/v1/operations/:id",
    schema: { summary: "One operation with its whole history", ...secured, params: byId, response: { 200: operation } },
    handler: async (request, reply) => {
      const caller = await deps.authenticate(request, "operations:read");
      noteSubject(request, { tenant: caller.tenantId, operation: request.params.id });
      return await answerOf(deps, request, reply, caller, request.params.id);
    },
  });
  typed.route({
    method: "GET",
    url: "/v1/operations",
    schema: {
      summary: "Operations, newest first",
      ...secured,
      querystring: listQuery,
      response: { 200: operationPage },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      noteSubject(request, { tenant: tenantId });
      const { connection, limit, ...filter } = request.query;
      const rows = await listOperations(deps.ledger, tenantId, {
        ...definedOnly(filter),
        ...(connection === undefined ? {} : { connectionId: connection }),
        limit: limit + 1,
      });
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      return {
        data: page.map((row) => toAnswer(row)),
        nextCursor: rows.length > limit && last !== undefined ? last.operationId : null,
      };
    },
  });
}

type Defined<Value> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> };

/** The members that are not undefined. */
function definedOnly<Value extends object>(value: Value): Defined<Value> {
  const result: Defined<Value> = {};
  for (const key in value) {
    const member = value[key];
    if (isDefined(member)) result[key] = member;
  }
  return result;
}

const isDefined = <Value>(value: Value): value is Exclude<Value, undefined> => value !== undefined;
