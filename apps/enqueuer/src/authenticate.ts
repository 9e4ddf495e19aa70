import { createHash } from "node:crypto";
import { ProblemError } from "@countersign/api";
import { type ApiScope, authenticate, type Caller, type Ledger } from "@countersign/ledger";
import type { FastifyRequest } from "fastify";

const keepMs = 3_000;
const maxKept = 1_000;

const unauthorized = (): ProblemError =>
  new ProblemError(
    401,
    "unauthorized",
    "A valid API key is required: Authorization: Bearer csk_…",
    {},
    { "www-authenticate": "Bearer" },
  );

/**
 * Who calls. Known keys are kept for a few seconds, under their digest, so that a revoked one stops soon; unknown ones are
 * never kept.
 */
export function authenticator(ledger: Ledger): (request: FastifyRequest, scope: ApiScope) => Promise<Caller> {
  const known = new Map<string, { until: number; caller: Caller }>();
  return async (request, scope) => {
    const key = /^Bearer (csk_[A-Za-z0-9_-]{20,100})$/.exec(request.headers.authorization ?? "")?.[1];
    if (key === undefined) throw unauthorized();
    const digest = createHash("sha256").update(key).digest("base64");
    const kept = known.get(digest);
    const caller = kept !== undefined && kept.until > performance.now() ? kept.caller : await authenticate(ledger, key);
    if (caller === undefined) throw unauthorized();
    if (known.size >= maxKept) known.clear();
    if (caller !== kept?.caller) known.set(digest, { until: performance.now() + keepMs, caller });
    if (!caller.scopes.includes(scope)) {
      throw new ProblemError(403, "forbidden", `This API key lacks the scope ${scope}`);
    }
    return caller;
  };
}
