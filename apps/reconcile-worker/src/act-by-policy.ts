import {
  decideDuplicate,
  finishWork,
  getOperation,
  knownReferences,
  type OperationView,
  openDuplicateTicket,
  PlanRefusedError,
  type Policy,
  type PolicyName,
  policyInForce,
  review,
  type WorkItem,
} from "@countersign/ledger";
import type { ReconcileDeps } from "./reconcile-deps.js";
import type { WorkEnd } from "./run-work.js";
import { voidRequestOf } from "./void-request.js";

/** Refusals that mean that somebody else was faster, or that there is nothing to decide any more. */
const overtaken = new Set(["not-in-review", "ticket-closed", "reference-unknown", "reference-being-voided"]);

/**
 * A tenant's written policy decides in place of a person: same checks, same history, named as the actor. Where it does not
 * apply, the ticket stays a person's.
 */
export async function actByPolicy(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  const { tenantId, subjectId: operationId } = item;
  const operation = await getOperation(deps.ledger, tenantId, operationId);
  let what = "not-for-policies";
  try {
    if (operation?.state === "NEEDS_REVIEW") what = await decideReview(deps, operation);
    else if (operation !== undefined) what = await decideDuplicates(deps, operation);
  } catch (error) {
    if (!(error instanceof PlanRefusedError)) throw error;
    if (error.code === "too-early") return { kind: "later", delayMs: deps.quiescenceMs / 2, what: error.code };
    if (error.code === "evidence-moved") return { kind: "later", delayMs: 0, what: error.code };
    if (!overtaken.has(error.code)) throw error;
    what = error.code;
  }
  await finishWork(deps.ledger.sql, item);
  return { kind: "done", what };
}

async function find(deps: ReconcileDeps, operation: OperationView, policy: PolicyName): Promise<Policy | undefined> {
  const { tenantId, connectionId, action } = operation;
  return await policyInForce(deps.ledger, { tenantId, connectionId, action, policy });
}

async function voidRequest(deps: ReconcileDeps, operation: OperationView) {
  const connection = await deps.connection(operation.tenantId, operation.connectionId);
  const provider = deps.provider(connection.provider);
  if (provider === undefined) throw new Error(`no adapter for provider ${connection.provider}`);
  return voidRequestOf(provider);
}

const why = (policy: Policy): string => `policy ${policy.policy}: ${policy.reason}`.slice(0, 500);

async function decideReview(deps: ReconcileDeps, operation: OperationView): Promise<string> {
  const { tenantId, operationId, evidenceNo, reason } = operation;
  const name =
    reason === "unprovable"
      ? "treat-unprovable-as-done"
      : reason === "more-than-one-match"
        ? "accept-duplicate-and-void"
        : undefined;
  const policy = name === undefined ? undefined : await find(deps, operation, name);
  if (policy === undefined) return "no-policy-for-this";
  const keep = name === "accept-duplicate-and-void" ? await firstSent(deps, operation) : undefined;
  if (name === "accept-duplicate-and-void" && keep === undefined) return "nothing-to-keep";
  await review(deps.ledger, {
    tenantId,
    operationId,
    evidenceNo,
    who: policy.policyId,
    why: why(policy),
    basis: "policy",
    decision: { kind: "keep", ...(keep === undefined ? {} : { providerRef: keep }) },
    quiescenceMs: deps.quiescenceMs,
    voidRequest: await voidRequest(deps, operation),
  });
  return "decided";
}

/** The first reference that was seen and is not a draft; one that is completed is kept before any other. */
async function firstSent(deps: ReconcileDeps, operation: OperationView): Promise<string | undefined> {
  const references = await knownReferences(deps.ledger.sql, operation.tenantId, operation.operationId);
  const sent = references.filter((known) => known.role !== "draft" && known.status !== "STAGED");
  return (sent.find((known) => known.status === "COMPLETED") ?? sent[0])?.providerRef;
}

async function decideDuplicates(deps: ReconcileDeps, operation: OperationView): Promise<string> {
  const { tenantId, operationId } = operation;
  const policy = await find(deps, operation, "accept-duplicate-and-void");
  const ticketId = policy === undefined ? undefined : await openDuplicateTicket(deps.ledger, tenantId, operationId);
  if (policy === undefined || ticketId === undefined) return "no-policy-for-this";
  await decideDuplicate(deps.ledger, {
    tenantId,
    ticketId,
    evidenceNo: operation.evidenceNo,
    // An operation that failed or was given up keeps none.
    ...(operation.providerRef === null ? {} : { keep: operation.providerRef }),
    who: policy.policyId,
    why: why(policy),
    basis: "policy",
    voidRequest: await voidRequest(deps, operation),
  });
  return "decided";
}
