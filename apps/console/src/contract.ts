import { inboxEvent, operation, ticket } from "@countersign/client";
import { z } from "zod";

/** What the console's own routes take and answer; its page is made from the same schemas. Times are ISO 8601 in UTC. */

/** Body of `POST /console/session`: the token that `countersign console-access add` printed. */
export const loginRequest = z.strictObject({ token: z.string().min(1).max(200) });

/** Who is logged in. `csrf` goes into the header `x-countersign-csrf` of every request that changes something. */
export const session = z.object({
  operator: z.string(),
  role: z.enum(["viewer", "operator"]),
  tenants: z.array(z.string()),
  csrf: z.string(),
  expiresAt: z.string(),
});
export type Session = z.output<typeof session>;

const oldest = z.object({ seconds: z.number(), tenantId: z.string(), subjectId: z.string() }).nullable();

/** Answer of `GET /console/overview?tenant=`; without a tenant: of all that the operator may see. */
export const overview = z.object({
  at: z.string(),
  /** Operations by state; the final states are as of the last tally, at most a minute old. */
  states: z.array(
    z.object({
      tenantId: z.string(),
      connection: z.string(),
      action: z.string(),
      state: z.string(),
      count: z.number(),
    }),
  ),
  /** UNKNOWN since the first attempt, an event since it came in and was not applied, a review since its last move. */
  oldest: z.object({ unknown: oldest, received: oldest, review: oldest }),
  /** Open tickets, by tenant, kind and owner: the most urgent first. */
  tickets: z.array(
    z.object({
      tenantId: z.string(),
      kind: z.string(),
      owner: z.string(),
      open: z.number(),
      overdue: z.number(),
      nextDueAt: z.string(),
    }),
  ),
  /** Connections that send nothing now, and why. */
  paused: z.array(
    z.object({
      tenantId: z.string(),
      connection: z.string(),
      why: z.enum(["paused", "provider-down", "hold"]),
      reason: z.string().nullable(),
      until: z.string().nullable(),
    }),
  ),
  /** Moves per minute over the last hour, the oldest first; minutes without any are left out. */
  minutes: z.array(
    z.object({
      minute: z.string(),
      action: z.string(),
      from: z.string(),
      to: z.string(),
      count: z.number(),
      /** Of a provider call (from IN_FLIGHT), mean and largest; 0 otherwise. */
      msMean: z.number(),
      msMax: z.number(),
    }),
  ),
  /** null where the queues can't be reached: nothing is lost, see the runbook. */
  queues: z
    .array(
      z.object({
        name: z.string(),
        waiting: z.number(),
        active: z.number(),
        delayed: z.number(),
        failed: z.number(),
        paused: z.boolean(),
      }),
    )
    .nullable(),
});
export type Overview = z.output<typeof overview>;

/** Body of `POST /console/{tenant}/search`: in a body, since an address must not stand in a URL. */
export const searchRequest = z.union([
  z.strictObject({ text: z.string().trim().min(1).max(400), cursor: z.uuid().optional() }),
  /** Of a document, hashed in the browser; lower-case hex. */
  z.strictObject({ documentSha256: z.string().regex(/^[0-9a-f]{64}$/), cursor: z.uuid().optional() }),
]);

/** What the text was taken for, and what was found: newest first, 50 at most. */
export const searchAnswer = z.object({
  as: z.enum(["operation-id", "intent-key", "reference", "document", "code", "signer", "nothing"]),
  data: z.array(operation),
  nextCursor: z.string().nullable(),
});
export type SearchAnswer = z.output<typeof searchAnswer>;

/** Answer of `GET /console/{tenant}/operations/{id}`: the operation as the API gives it, and all that belongs to it. */
export const operationPageAnswer = z.object({
  operation,
  references: z.array(
    z.object({ reference: z.string(), role: z.string(), status: z.string().nullable(), source: z.string().nullable() }),
  ),
  events: z.array(inboxEvent),
  related: z.array(z.object({ operationId: z.string(), action: z.string(), state: z.string(), relation: z.string() })),
  tickets: z.array(ticket),
  /** What was done about it here: who, what, why. */
  actions: z.array(z.object({ at: z.string(), operator: z.string(), action: z.string(), why: z.string().nullable() })),
});
export type OperationPageAnswer = z.output<typeof operationPageAnswer>;

/** Body of `POST /console/{tenant}/operations/{id}/reveal`, for operators only, and recorded. */
export const revealRequest = z.strictObject({ why: z.string().min(3).max(500) });
/** The payload as it was approved; null where it has been erased. */
export const revealAnswer = z.object({ payload: z.record(z.string(), z.unknown()).nullable() });

/** Answer of `GET /console/actions?tenant=&cursor=`: what was done here, the newest first. */
export const actionPage = z.object({
  data: z.array(
    z.object({
      actionId: z.string(),
      at: z.string(),
      operator: z.string(),
      role: z.string(),
      tenantId: z.string().nullable(),
      action: z.string(),
      subjectId: z.string().nullable(),
      why: z.string().nullable(),
      status: z.number().nullable(),
    }),
  ),
  nextCursor: z.string().nullable(),
});
export type ActionPage = z.output<typeof actionPage>;
