import {
  getOperation,
  type Ledger,
  listOperations,
  NotFoundError,
  openConnection,
  PlanRefusedError,
  type Review,
  type SigningStatus,
} from "@countersign/ledger";
import { meansSent, type SignatureProvider, signingStatusOf, usableReference } from "@countersign/provider";
import type { NeutralPayload } from "@countersign/runtime";
import { type PlanningParts, preparePlan, voidRequestOf } from "./prepare-plan.js";

/** A decision as a person gives it. */
export interface ReviewRequest {
  tenantId: string;
  operationId: string;
  decision: "keep" | "abandon";
  reference?: string | undefined;
  /** The reference was found by hand: it is read at the provider first. */
  foundByHand?: boolean | undefined;
  evidenceNo: number;
  who: string;
  why: string;
  dependants?: "release" | "retire" | "retry" | undefined;
  replacement?:
    | {
        intentKey: string;
        payload: NeutralPayload;
        mode: "void-first" | "send-first";
        requestedBy?: string | undefined;
        approvedBy?: string | undefined;
      }
    | undefined;
}

/** How long the provider may take to be read, ms. */
const readDeadlineMs = 15_000;

/**
 * Turns a person's decision into one that the ledger takes: a reference found by hand is read at the provider, the
 * replacement prepared. Reads, writes nothing. Throws the ledger's refusals, and `reference-not-found`,
 * `reference-of-another-operation`, `reference-is-a-draft`, `provider-unreachable`, `intent-exists`.
 */
export async function prepareReview(
  ledger: Ledger,
  parts: PlanningParts,
  request: ReviewRequest,
): Promise<Omit<Review, "quiescenceMs">> {
  const { tenantId, operationId } = request;
  const operation = await getOperation(ledger, tenantId, operationId);
  if (operation === undefined) throw new NotFoundError("operation");
  const connection = await openConnection(ledger, tenantId, operation.connectionId);
  const provider = parts.provider(connection.provider);
  if (provider === undefined) {
    throw new PlanRefusedError("provider-unknown", "this build has no adapter for the connection's provider");
  }
  const common = {
    tenantId,
    operationId,
    evidenceNo: request.evidenceNo,
    who: request.who,
    why: request.why,
    basis: "person",
    voidRequest: voidRequestOf(provider),
  } as const;
  if (request.decision === "keep") {
    const { reference } = request;
    const call = { baseUrl: connection.baseUrl, credential: connection.credential, deadlineMs: readDeadlineMs };
    // What the ledger refuses anyway is refused without a call.
    const standing = operation.state === "NEEDS_REVIEW" && operation.evidenceNo === request.evidenceNo;
    const byHand = request.foundByHand === true && reference !== undefined && standing;
    const found = byHand ? { foundByHand: await readByHand(provider, reference, call, request) } : {};
    return {
      ...common,
      decision: { kind: "keep", ...(reference === undefined ? {} : { providerRef: reference }), ...found },
    };
  }
  const { dependants, replacement } = request;
  if (replacement !== undefined) await refuseTaken(ledger, tenantId, replacement.intentKey);
  const plan =
    replacement === undefined
      ? {}
      : {
          replacement: await preparePlan(parts, {
            tenantId,
            intentKey: replacement.intentKey,
            action: "SEND",
            payload: replacement.payload,
            connection: operation.connectionId,
            requestedBy: replacement.requestedBy,
            approvedBy: replacement.approvedBy,
            supersedes: { operationId, mode: replacement.mode },
          }),
        };
  return { ...common, decision: { kind: "abandon", ...(dependants === undefined ? {} : { dependants }), ...plan } };
}

/** A replacement is a new intent: one that exists already is some other decision's, or an earlier try of this one. */
async function refuseTaken(ledger: Ledger, tenantId: string, intentKey: string): Promise<void> {
  const [taken] = await listOperations(ledger, tenantId, { intentKey, limit: 1 });
  if (taken !== undefined) {
    throw new PlanRefusedError("intent-exists", "the replacement's intent exists already", {
      existing: taken.operationId,
    });
  }
}

async function readByHand(
  provider: SignatureProvider,
  ref: string,
  call: Parameters<SignatureProvider["lookup"]>[1],
  { tenantId, operationId }: ReviewRequest,
): Promise<{ signingStatus: SigningStatus }> {
  if (usableReference(ref) === undefined) {
    throw new PlanRefusedError("reference-not-found", "this is no reference of a provider");
  }
  const result = await provider.lookup({ by: "reference", ref }, call);
  if (result.kind === "failed") {
    const { cause, retryAfterMs } = result;
    throw new PlanRefusedError("provider-unreachable", `the provider could not be read (${cause}): try again`, {
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }
  const match = result.kind === "found" ? result.matches.find((each) => each.ref === ref) : undefined;
  if (match === undefined) throw new PlanRefusedError("reference-not-found", "the provider knows no such reference");
  if ((match.operationId ?? operationId) !== operationId || (match.tenantId ?? tenantId) !== tenantId) {
    throw new PlanRefusedError("reference-of-another-operation", "the provider's record names another operation");
  }
  if (!meansSent(match.status)) {
    throw new PlanRefusedError(
      "reference-is-a-draft",
      "nobody has been mailed for this reference: it can't be kept as sent",
    );
  }
  return { signingStatus: signingStatusOf[match.status] };
}
