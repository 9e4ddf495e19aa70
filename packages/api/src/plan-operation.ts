import type { OperationRequest, operationRequest } from "@countersign/client";
import { type PlanRequest, preparePlan } from "@countersign/client/transaction";
import { type PlanOutcome, plan } from "@countersign/ledger";
import { withinTrace } from "@countersign/runtime";
import type { z } from "zod";
import type { ApiDeps } from "./deps.js";
import { handOverPlanned } from "./hand-over-planned.js";
import { badRequest, ProblemError } from "./problem.js";
import { reportPlanned, reportRefused } from "./report-plan.js";

export type { OperationRequest };

type Parsed = z.output<typeof operationRequest>;

/** The intent key may stand in the header, in the body, or in both alike. */
export function intentKeyOf(header: string | string[] | undefined, body: string | undefined): string {
  const named = Array.isArray(header) ? header[0] : header;
  if (Array.isArray(header) && header.length > 1) throw badRequest("Idempotency-Key", "must be given once");
  if (named === undefined && body === undefined) {
    throw badRequest("intentKey", "is required, in the body or as the Idempotency-Key header");
  }
  if (named !== undefined && body !== undefined && named !== body) {
    throw badRequest("Idempotency-Key", "differs from intentKey in the body: give one, or the same twice");
  }
  const key = named ?? body ?? "";
  if (!/^[\x20-\x7e]{1,255}$/.test(key))
    throw badRequest("Idempotency-Key", "must be 1 to 255 printable ASCII characters");
  if (key.startsWith("cs:")) throw badRequest("intentKey", "must not start with cs:, which is reserved");
  return key;
}

function toPlanRequest(tenantId: string, intentKey: string, body: Parsed): PlanRequest {
  const common = {
    tenantId,
    intentKey,
    connection: body.connection,
    requestedBy: body.requestedBy,
    approvedBy: body.approvedBy,
  };
  return body.action === "SEND"
    ? { ...common, action: "SEND", payload: body.payload, supersedes: body.supersedes }
    : { ...common, action: body.action, target: body.target, payload: body.payload };
}

/**
 * Plans, and hands over what became due. Throws the ledger's refusals, and `payload-conflict`.
 * @param traceparent the caller's header, which the operation's trace is linked to
 */
export async function planOperation(
  deps: ApiDeps,
  tenantId: string,
  intentKey: string,
  body: Parsed,
  traceparent?: string,
): Promise<Planned> {
  const asked = { tenant: tenantId, action: body.action, traceparent, startedAt: Date.now() };
  try {
    const planned = await planOrRefuse(deps, toPlanRequest(tenantId, intentKey, body));
    reportPlanned(deps, asked, planned);
    if (planned.kind === "created") {
      withinTrace(planned.operation.operationId, () =>
        handOverPlanned(deps, tenantId, [planned.operation, ...planned.alsoPlanned]),
      );
    }
    return planned;
  } catch (error) {
    reportRefused(asked, error);
    throw error;
  }
}

type Planned = Exclude<PlanOutcome, { kind: "conflict" }>;

async function planOrRefuse(deps: ApiDeps, request: PlanRequest): Promise<Planned> {
  const outcome = await plan(deps.ledger, await preparePlan(deps.planning, request));
  if (outcome.kind !== "conflict") return outcome;
  throw new ProblemError(
    409,
    "payload-conflict",
    "This intent was approved with another payload: a changed payload is a new intent",
    {
      operationId: outcome.operationId,
      differs: outcome.differs,
    },
  );
}
