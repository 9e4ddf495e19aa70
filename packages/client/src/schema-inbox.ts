import { operationId } from "@countersign/runtime";
import { z } from "zod";
import { connectionName, opaqueId, ticket } from "./schema.js";

/** The inbox over HTTP: webhook events as they were stored, never their bytes. */

export const inboxStatus = z.enum([
  "RECEIVED",
  "WAITING",
  "APPLIED",
  "NO_OP",
  "CONFLICT",
  "QUARANTINED",
  "DEAD",
  "DISCARDED",
]);

/** PostgreSQL stores neither NUL nor half a surrogate pair, so that nothing can match them. */
const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes("\0"), "holds a character that no event can hold");

/** Whatever PostgreSQL takes as an instant: it has no year 0000, and no offset of 16 hours. */
export const instant = z.iso
  .datetime({ offset: true })
  .regex(/^(?!0000)/, "must be of the year 0001 or later")
  .regex(/(?:Z|[+-](?:0\d|1[0-5]):\d\d)$/, "must have an offset of less than 16 hours");

const filter = {
  connection: connectionName.optional(),
  endpoint: z
    .string()
    .regex(/^we_[A-Za-z0-9_-]{1,64}$/, "must be the id of a webhook endpoint")
    .optional(),
  type: text(255).optional(),
  /** Why it stands as it does: `unknown-type`, `unmapped-reference`, `completed-after-declined`, … */
  reason: text(255).optional(),
  /** The provider's reference of the request that it speaks of. */
  reference: text(255).optional(),
  /** Received at or after. */
  since: instant.optional(),
  /** Received before. */
  until: instant.optional(),
};

/** Query of `GET /v1/inbox`. */
export const inboxQuery = z.strictObject({
  /** May be given several times. */
  status: z.union([inboxStatus, z.array(inboxStatus)]).optional(),
  ...filter,
  cursor: z.uuid().optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
});

export const inboxEvent = z.object({
  inboxId: z.string(),
  connection: z.string(),
  endpoint: z.string(),
  /** The provider's, or a derived one (`weakId`). */
  eventId: z.string(),
  type: z.string().nullable(),
  reference: z.string().nullable(),
  operationId: z.string().nullable(),
  status: inboxStatus,
  reason: z.string().nullable(),
  /** Not proven enough to be believed: the provider is asked first. */
  hint: z.boolean(),
  weakId: z.boolean(),
  /** Another body came under its id, or an unsigned id that differs from the signed one. */
  conflicting: z.boolean(),
  failures: z.int(),
  replays: z.int(),
  replayedBy: z.string().nullable(),
  discardedBy: z.string().nullable(),
  discardReason: z.string().nullable(),
  receivedAt: z.string(),
  appliedAt: z.string().nullable(),
  dueAt: z.string().nullable(),
  /** Its bytes are still kept. */
  hasBody: z.boolean(),
});
export const inboxPage = z.object({ data: z.array(inboxEvent), nextCursor: z.string().nullable() });

/**
 * What a replay would do: `applied` moves the request to `status`; `nothing`: the same or an older story, an event that is
 * settled or on its way, erased bytes; `conflict`: a person's, again; `asks-provider`: it only hints, what the provider says
 * is applied; `waits`: its reference is bound to nothing; `quarantined`: still nobody can interpret it; `fails`: its adapter
 * is missing in this build.
 */
export const replayOutcome = z.enum([
  "applied",
  "nothing",
  "conflict",
  "asks-provider",
  "waits",
  "quarantined",
  "fails",
]);
export const replayPreview = z.object({
  outcome: replayOutcome,
  reason: z.string().nullable(),
  /** Of the request, afterwards; only for `applied`. */
  status: z.string().nullable(),
  /** The operation that the event is evidence for while its reference is bound to nothing. */
  evidenceFor: z.string().nullable(),
});
export type ReplayPreview = z.output<typeof replayPreview>;

/** An event with its tickets, its request, and what a replay would do now. */
export const inboxDetail = inboxEvent.extend({
  request: z
    .object({
      reference: z.string(),
      /** null: the provider has said nothing of it that counts. */
      status: z.string().nullable(),
      operationId: operationId.nullable(),
    })
    .nullable(),
  tickets: z.array(ticket),
  replay: replayPreview,
});

/** Body of `POST /v1/inbox/{id}/replay`. */
export const inboxReplayRequest = z.strictObject({ who: opaqueId });
export const inboxReplayAnswer = z.object({
  inboxId: z.string(),
  replayed: z.boolean(),
  /** Why not: `already-due`, `event-is-settled`, `busy` (somebody else replays it at this moment). */
  reason: z.string().nullable(),
});

/** Body of `POST /v1/inbox/replay`: at least one condition, or `all`. */
export const inboxBulkReplayRequest = z.strictObject({
  status: z.array(inboxStatus).min(1).optional(),
  ...filter,
  ids: z.array(z.uuid()).min(1).max(10_000).optional(),
  /** Everything that may be replayed; only without any other condition. */
  all: z.literal(true).optional(),
  who: opaqueId,
  /** Only says what would happen. */
  dryRun: z.boolean().default(false),
  limit: z.int().min(1).max(10_000).default(1_000),
});
const bulkReplayRow = replayPreview.extend({
  inboxId: z.string(),
  /** Of a dry run what would happen; otherwise `replayed` (made due again), or `not-replayed` for a named event. */
  outcome: z.union([replayOutcome, z.enum(["replayed", "not-replayed"])]),
});
export type BulkReplayRow = z.output<typeof bulkReplayRow>;
export const inboxBulkReplayAnswer = z.object({
  dryRun: z.boolean(),
  /** The oldest first. */
  rows: z.array(bulkReplayRow),
  /** Rows by outcome. */
  counts: z.record(z.string(), z.int()),
  /** The limit left some out: ask again once these are applied. */
  more: z.boolean(),
});

/** Body of `POST /v1/inbox/{id}/discard`. */
export const inboxDiscardRequest = z.strictObject({ who: opaqueId, why: z.string().max(500) });
