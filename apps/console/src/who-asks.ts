import { notFound, ProblemError } from "@countersign/api";
import { type ConsoleOperator, listTenantIds, operatorById } from "@countersign/ledger";
import type { FastifyRequest } from "fastify";
import type { ConsoleDeps } from "./deps.js";
import { cookieName, type SessionClaims } from "./session-cookie.js";

/** A request's operator, and the login that it belongs to (none where everybody is trusted). */
export interface Asking {
  readonly operator: ConsoleOperator;
  readonly claims: SessionClaims;
}

export const notLoggedIn = (): ProblemError => new ProblemError(401, "not-logged-in", "Log in first");

const keepMs = 3_000;
const maxKept = 1_000;

/** Says who asks. Operators are kept for a few seconds, so that a revoked token stops soon. */
export class WhoAsks {
  readonly #deps: ConsoleDeps;
  readonly #known = new Map<string, { until: number; operator: ConsoleOperator | undefined }>();
  readonly #asking = new WeakMap<FastifyRequest, Asking>();

  constructor(deps: ConsoleDeps) {
    this.#deps = deps;
  }

  /** Reads the cookie; a forged, changed or old one is none. */
  async find(request: FastifyRequest): Promise<Asking | undefined> {
    const kept = this.#asking.get(request);
    if (kept !== undefined) return kept;
    const cookie = request.cookies[cookieName];
    const claims = cookie === undefined ? undefined : this.#deps.cookies.open(cookie, Date.now());
    if (claims === undefined) return undefined;
    const { everybody } = this.#deps;
    const operator = claims.operatorId === everybody?.operatorId ? everybody : await this.#operator(claims.operatorId);
    if (operator === undefined) return undefined;
    const asking = { operator, claims };
    this.#asking.set(request, asking);
    return asking;
  }

  /** @throws ProblemError 401 */
  async need(request: FastifyRequest): Promise<Asking> {
    const asking = await this.find(request);
    if (asking === undefined) throw notLoggedIn();
    return asking;
  }

  async #operator(operatorId: string): Promise<ConsoleOperator | undefined> {
    const kept = this.#known.get(operatorId);
    if (kept !== undefined && kept.until > performance.now()) return kept.operator;
    const operator = await operatorById(this.#deps.ledger, operatorId);
    if (this.#known.size >= maxKept) this.#known.clear();
    this.#known.set(operatorId, { until: performance.now() + keepMs, operator });
    return operator;
  }
}

/** The tenants that an operator may see, by name. */
export async function tenantsOf(deps: ConsoleDeps, operator: ConsoleOperator): Promise<string[]> {
  return operator.tenants ?? (await listTenantIds(deps.ledger));
}

/** @throws ProblemError 404, for another's tenant exactly as for one that does not exist */
export function mayObserve(operator: ConsoleOperator, tenantId: string): void {
  if (operator.tenants !== null && !operator.tenants.includes(tenantId)) {
    throw notFound("tenant");
  }
}

/** @throws ProblemError 403 */
export function mayAct(operator: ConsoleOperator): void {
  if (operator.role !== "operator") {
    throw new ProblemError(403, "forbidden", "A viewer changes nothing: ask somebody with the role operator");
  }
}
