import { randomBytes } from "node:crypto";
import { ProblemError } from "@countersign/api";
import { type ConsoleOperator, operatorByToken } from "@countersign/ledger";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { loginRequest, type Session, session } from "../contract.js";
import type { ConsoleDeps } from "../deps.js";
import { LoginBrake } from "../login-brake.js";
import { namesLoopback } from "../loopback.js";
import { cookieName, type SessionClaims } from "../session-cookie.js";
import { notLoggedIn, tenantsOf, type WhoAsks } from "../who-asks.js";

const hourMs = 3_600_000;

/** Log in, who am I, log out. */
export function sessionRoutes(app: FastifyInstance, deps: ConsoleDeps, who: WhoAsks): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const cookie = { path: "/", httpOnly: true, sameSite: "strict", secure: deps.secureCookie } as const;
  const brake = new LoginBrake();

  const begin = async (reply: FastifyReply, operator: ConsoleOperator): Promise<Session> => {
    const lasts = deps.sessionHours * hourMs;
    const claims: SessionClaims = {
      operatorId: operator.operatorId,
      nonce: randomBytes(18).toString("base64url"),
      expiresAt: Date.now() + lasts,
    };
    reply.setCookie(cookieName, deps.cookies.seal(claims), { ...cookie, maxAge: lasts / 1_000 });
    return await toSession(operator, claims);
  };

  const toSession = async (operator: ConsoleOperator, claims: SessionClaims): Promise<Session> => ({
    operator: operator.name,
    role: operator.role,
    tenants: await tenantsOf(deps, operator),
    csrf: deps.cookies.csrfOf(claims),
    expiresAt: new Date(claims.expiresAt).toISOString(),
  });

  typed.route({
    method: "POST",
    url: "/console/session",
    schema: { body: loginRequest, response: { 200: session } },
    handler: async (request, reply) => {
      brake.check();
      const operator = await operatorByToken(deps.ledger, request.body.token);
      if (operator === undefined) {
        brake.failed();
        throw new ProblemError(401, "token-unknown", "This token lets nobody in", {
          detail: "It is unknown or revoked: countersign console-access add makes one",
        });
      }
      return await begin(reply, operator);
    },
  });
  typed.route({
    method: "GET",
    url: "/console/session",
    schema: { response: { 200: session } },
    handler: async (request, reply) => {
      const asking = await who.find(request);
      if (asking !== undefined) return await toSession(asking.operator, asking.claims);
      // Without logins: a page elsewhere whose name was bent to this machine is still nobody.
      if (deps.everybody !== undefined && namesLoopback(request.headers.host)) {
        return await begin(reply, deps.everybody);
      }
      throw notLoggedIn();
    },
  });
  typed.route({
    method: "DELETE",
    url: "/console/session",
    schema: { response: { 204: z.null() } },
    handler: async (_request, reply) => {
      reply.clearCookie(cookieName, cookie);
      return reply.code(204).send(null);
    },
  });
}
