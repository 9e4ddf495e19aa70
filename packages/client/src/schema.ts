import { actions, intentKey, neutralPayload, operationId, targetPayload } from "@countersign/runtime";
import { z } from "zod";

/** The API's one truth: the enqueuer's routes and this client are both made from these schemas. */

/** Who asks or decides. */
export const opaqueId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "must be 1 to 128 printable characters without spaces: an opaque id, not a name");

export const connectionName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be 1 to 63 of a-z, 0-9, _ and -");

const producersIntentKey = intentKey.refine(
  (key) => !key.startsWith("cs:"),
  "must not start with cs:, which is reserved",
);

const target = z.union(
  [z.strictObject({ operationId }), z.strictObject({ providerRef: z.string().min(1).max(255) })],
  "must be {operationId} of a SEND, or {providerRef}",
);

const common = {
  intentKey: producersIntentKey.optional(),
  connection: connectionName.optional(),
  requestedBy: opaqueId.optional(),
  approvedBy: opaqueId.optional(),
};

export const sendRequest = z.strictObject({
  ...common,
  action: z.literal("SEND"),
  payload: neutralPayload,
  supersedes: z
    .strictObject({ operationId, mode: z.enum(["void-first", "send-first"]).default("void-first") })
    .optional(),
});

const onTarget = <Name extends "VOID" | "RESEND" | "FINALIZE">(action: Name) =>
  z.strictObject({ ...common, action: z.literal(action), target, payload: targetPayload.optional() });

/** Body of `POST /v1/operations`. */
export const operationRequest = z.discriminatedUnion("action", [
  sendRequest,
  onTarget("VOID"),
  onTarget("RESEND"),
  onTarget("FINALIZE"),
]);
export type OperationRequest = z.input<typeof operationRequest>;

export const stateName = z.enum([
  "PLANNED",
  "IN_FLIGHT",
  "UNKNOWN",
  "RECONCILING",
  "NEEDS_REVIEW",
  "CONFIRMED",
  "TERMINAL_FAILED",
  "SUPERSEDED",
]);

/** Did it go out? Every caller must handle all three. */
export const sentAnswer = z.enum(["yes", "no", "unknown"]);

export const historyLine = z.object({
  seq: z.int(),
  at: z.string(),
  kind: z.string(),
  from: stateName.nullable(),
  to: stateName.nullable(),
  reason: z.string(),
  actor: z.string(),
  attempt: z.int(),
  evidence: z.record(z.string(), z.unknown()).nullable(),
});

const knownReference = z.object({ reference: z.string(), role: z.string(), status: z.string().nullable() });

/** An operation as `GET /v1/operations/{id}` and the plan answer give it. */
export const operation = z.object({
  operationId,
  intentKey: z.string(),
  action: z.enum(actions),
  connection: z.string(),
  state: stateName,
  reason: z.string(),
  sent: sentAnswer,
  /** How do we know: one sentence per piece of evidence. */
  because: z.array(z.string()),
  nextLookAt: z.string().nullable(),
  userMessage: z.string(),
  providerRef: z.string().nullable(),
  signingStatuses: z.array(z.string()),
  attempts: z.int(),
  waitsFor: z.int(),
  target: operationId.nullable(),
  supersedes: operationId.nullable(),
  supersededBy: operationId.nullable(),
  basis: z.string().nullable(),
  cause: z.string().nullable(),
  /** Which evidence a decision on it has to name. */
  evidenceNo: z.int(),
  /** The sealed document that a FINALIZE archived: `GET /v1/documents/{sha256}`. */
  archive: z.object({ sha256: z.string() }).nullable(),
  requestedBy: z.string().nullable(),
  approvedBy: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
  finishedAt: z.string().nullable(),
  history: z.array(historyLine).optional(),
  /** Guards that worked: senders that came too late, claims lost, verdicts refused. */
  nearMisses: z.array(z.object({ kind: z.string(), at: z.string(), attempt: z.int(), actor: z.string() })).optional(),
  /** Every reference seen for it; only for a key that may decide (`reviews:write`), and only in the single read. */
  references: z.array(knownReference).optional(),
});
export type OperationAnswer = z.output<typeof operation>;

/** Answer of `POST /v1/operations`. */
export const planAnswer = operation.extend({
  /** The same approval was asked for before, by somebody else. */
  duplicate: z.boolean().optional(),
  firstRequestedBy: z.string().nullable().optional(),
  firstRequestedAt: z.string().optional(),
  /** VOIDs that were planned with it. */
  alsoPlanned: z.array(operationId).optional(),
});
export type PlanAnswer = z.output<typeof planAnswer>;

export const operationPage = z.object({ data: z.array(operation), nextCursor: z.string().nullable() });

export const documentAnswer = z.object({ sha256: z.string(), size: z.int() });

const decision = { who: opaqueId, why: z.string().max(500) };

const reviewBody = z.strictObject({
  ...decision,
  decision: z.enum(["keep", "abandon"]),
  /** Which reference to keep; left out for VOID, RESEND and FINALIZE. */
  reference: z.string().min(1).max(255).optional(),
  /** The reference is none that the ledger knows: it is read at the provider first. */
  foundByHand: z.boolean().optional(),
  /** `evidenceNo` of the operation as it was seen. */
  evidenceNo: z.int().min(0),
  /** What becomes of operations that wait for an abandoned VOID. */
  dependants: z.enum(["release", "retire", "retry"]).optional(),
  /** A SEND that is planned in the same transaction in place of the abandoned one. */
  replacement: z
    .strictObject({
      intentKey: producersIntentKey,
      payload: neutralPayload,
      mode: z.enum(["void-first", "send-first"]).default("void-first"),
      requestedBy: opaqueId.optional(),
      approvedBy: opaqueId.optional(),
    })
    .optional(),
});

/** What a body would leave unsaid is refused rather than ignored. */
const onlyFor: Record<"keep" | "abandon", readonly ("reference" | "foundByHand" | "dependants" | "replacement")[]> = {
  keep: ["reference", "foundByHand"],
  abandon: ["dependants", "replacement"],
};

/** Body of `POST /v1/operations/{id}/review`. */
export const reviewRequest = reviewBody.superRefine((body, context) => {
  const other = body.decision === "keep" ? "abandon" : "keep";
  for (const field of onlyFor[other]) {
    if (body[field] !== undefined) {
      context.addIssue({ code: "custom", path: [field], message: `belongs to the decision ${other} only` });
    }
  }
  if (body.foundByHand === true && body.reference === undefined) {
    context.addIssue({ code: "custom", path: ["reference"], message: "is needed: it is read at the provider" });
  }
});

export const reviewAnswer = z.object({
  operation,
  /** VOIDs that the decision planned or released. */
  planned: z.array(operationId),
  replacement: operationId.nullable(),
});

export const ticket = z.object({
  ticketId: z.string(),
  kind: z.string(),
  subjectKind: z.string(),
  subjectId: z.string(),
  owner: z.string(),
  reason: z.string(),
  openedAt: z.string(),
  dueAt: z.string(),
  resolvedAt: z.string().nullable(),
  resolution: z.string().nullable(),
  resolvedBy: z.string().nullable(),
});
export const ticketPage = z.object({ data: z.array(ticket), nextCursor: z.string().nullable() });

/** A decision that may be taken, and what it would do: consequences before the click. */
export const openDecision = z.object({
  decision: z.enum(["keep", "abandon"]),
  /** What it would keep; null: the target's (VOID, RESEND, FINALIZE), or none. */
  reference: z.string().nullable(),
  /** References that get a VOID. */
  voids: z.array(z.string()),
  /** References that are over already and stay as they are. */
  leftAlone: z.array(z.string()),
  /** It has to say what becomes of those that wait, in one of these words; empty: it need not. */
  dependants: z.array(z.enum(["release", "retire", "retry"])),
});
export type OpenDecision = z.output<typeof openDecision>;

/** A ticket with what its decision needs: the evidence, the references, who waits, and what may be decided. */
export const ticketDetail = ticket.extend({
  operation: z
    .object({
      action: z.enum(actions),
      state: stateName,
      evidenceNo: z.int(),
      references: z.array(knownReference),
      waiting: z.array(z.object({ operationId, action: z.string(), relation: z.string() })),
      /** No review before this moment: an attempt may still become visible. */
      decidableFrom: z.string().nullable(),
      decisions: z.array(openDecision),
    })
    .nullable(),
});

export const ticketResolveRequest = z.strictObject({ who: opaqueId, resolution: z.string().max(500) });
/** For a `duplicate` ticket: which reference stays; null keeps none. */
export const ticketDecideRequest = z.strictObject({
  ...decision,
  keep: z.string().min(1).max(255).nullable(),
  /** `evidenceNo` of the operation as the ticket showed it. */
  evidenceNo: z.int().min(0),
});
export const ticketDecideAnswer = z.object({ operationId, planned: z.array(operationId), leftAlone: z.int() });

export const holdRequest = z.strictObject({
  ...decision,
  connection: connectionName.optional(),
  action: z.enum(actions).optional(),
  /** Ends by itself after this many minutes. */
  minutes: z.int().min(1).max(525_600).optional(),
});
export const holdAnswer = z.object({ holdId: z.string() });
export const holdPage = z.object({
  data: z.array(
    z.object({
      holdId: z.string(),
      connection: z.string().nullable(),
      action: z.string().nullable(),
      heldBy: z.string(),
      reason: z.string(),
      createdAt: z.string(),
      endsAt: z.string().nullable(),
    }),
  ),
});

export const policyRequest = z.strictObject({
  ...decision,
  policy: z.enum(["treat-unprovable-as-done", "accept-duplicate-and-void", "accept-replay-risk"]),
  action: z.enum(actions),
  connection: connectionName.optional(),
});
export const policyAnswer = z.object({ policyId: z.string() });
export const policyPage = z.object({
  data: z.array(
    z.object({
      policyId: z.string(),
      policy: z.string(),
      action: z.string(),
      connection: z.string().nullable(),
      writtenBy: z.string(),
      reason: z.string(),
      createdAt: z.string(),
    }),
  ),
});

export const connectionPage = z.object({
  data: z.array(
    z.object({
      connection: z.string(),
      provider: z.string(),
      isDefault: z.boolean(),
      lookupVerifiedAt: z.string().nullable(),
      pausedForMs: z.number(),
      pauseReason: z.string().nullable(),
    }),
  ),
});

/** RFC 9457 problem details, as every error answer. */
export const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
});
export type Problem = z.output<typeof problem>;
