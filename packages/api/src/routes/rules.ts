import { holdAnswer, holdPage, holdRequest, policyAnswer, policyPage, policyRequest } from "@countersign/client";
import {
  holdSending,
  listHolds,
  listPolicies,
  releaseHold,
  revokePolicy,
  toIso,
  writePolicy,
} from "@countersign/ledger";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { ApiDeps } from "../deps.js";
import { notFound } from "../problem.js";

const secured = { security: [{ apiKey: [] }] };
const byId = z.object({ id: z.uuid() });
const byWho = z.strictObject({ who: z.string().regex(/^[\x21-\x7e]{1,128}$/) });
const iso = (instant: string | null): string | null => (instant === null ? null : toIso(instant));

/** What a tenant has ruled: holds (nothing of their scope is sent) and written policies. */
export function ruleRoutes(app: FastifyInstance, deps: ApiDeps): void {
  holdRoutes(app, deps);
  policyRoutes(app, deps);
}

function holdRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const tags = { tags: ["holds"], ...secured };
  typed.route({
    method: "GET",
    url: "/v1/holds",
    schema: { summary: "Holds in force", ...tags, response: { 200: holdPage } },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const holds = await listHolds(deps.ledger, tenantId);
      return {
        data: holds.map(({ connectionId, ...hold }) => ({
          ...hold,
          connection: connectionId,
          createdAt: toIso(hold.createdAt),
          endsAt: iso(hold.endsAt),
        })),
      };
    },
  });
  typed.route({
    method: "POST",
    url: "/v1/holds",
    schema: {
      summary: "Send nothing of a tenant, a connection or an action; planning goes on",
      ...tags,
      body: holdRequest,
      response: { 201: holdAnswer },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "tenant:admin");
      const { who, why, connection, action, minutes } = request.body;
      const holdId = await holdSending(deps.ledger, {
        tenantId,
        by: who,
        reason: why,
        ...(connection === undefined ? {} : { connectionId: connection }),
        ...(action === undefined ? {} : { action }),
        ...(minutes === undefined ? {} : { forMs: minutes * 60_000 }),
      });
      reply.code(201);
      return { holdId };
    },
  });
  typed.route({
    method: "DELETE",
    url: "/v1/holds/:id",
    schema: {
      summary: "Release a hold; what waited is sent gradually",
      ...tags,
      params: byId,
      querystring: byWho,
      response: { 204: z.null() },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "tenant:admin");
      await releaseHold(deps.ledger, tenantId, request.params.id, request.query.who);
      return reply.code(204).send(null);
    },
  });
}

function policyRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const tags = { tags: ["policies"], ...secured };
  typed.route({
    method: "GET",
    url: "/v1/policies",
    schema: { summary: "Written policies in force", ...tags, response: { 200: policyPage } },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      const policies = await listPolicies(deps.ledger, tenantId);
      return {
        data: policies.map(({ connectionId, ...policy }) => ({
          ...policy,
          connection: connectionId,
          createdAt: toIso(policy.createdAt),
        })),
      };
    },
  });
  typed.route({
    method: "POST",
    url: "/v1/policies",
    schema: {
      summary: "Write a policy",
      ...tags,
      body: policyRequest,
      response: { 201: policyAnswer },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "tenant:admin");
      const { who, why, policy, action, connection } = request.body;
      const policyId = await writePolicy(deps.ledger, {
        tenantId,
        policy,
        action,
        by: who,
        reason: why,
        ...(connection === undefined ? {} : { connectionId: connection }),
      });
      reply.code(201);
      return { policyId };
    },
  });
  typed.route({
    method: "DELETE",
    url: "/v1/policies/:id",
    schema: {
      summary: "Revoke a policy; what it decided stays",
      ...tags,
      params: byId,
      querystring: byWho,
      response: { 204: z.null() },
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "tenant:admin");
      if (!(await revokePolicy(deps.ledger, tenantId, request.params.id, request.query.who))) throw notFound("policy");
      return reply.code(204).send(null);
    },
  });
}
