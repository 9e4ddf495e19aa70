import { z } from "zod";
import type { CallOptions, HttpClient } from "./http-client.js";
import {
  inboxBulkReplayAnswer,
  type inboxBulkReplayRequest,
  inboxDetail,
  type inboxEvent,
  inboxPage,
  inboxReplayAnswer,
  type inboxStatus,
} from "./schema-inbox.js";

export type InboxStatus = z.output<typeof inboxStatus>;
export type InboxEvent = z.output<typeof inboxEvent>;
export type InboxDetail = z.output<typeof inboxDetail>;
export type InboxReplayAnswer = z.output<typeof inboxReplayAnswer>;
export type BulkReplayRequest = z.input<typeof inboxBulkReplayRequest>;
export type BulkReplayAnswer = z.output<typeof inboxBulkReplayAnswer>;

export interface InboxFilter {
  status?: readonly InboxStatus[];
  connection?: string;
  endpoint?: string;
  type?: string;
  reason?: string;
  reference?: string;
  /** ISO instants: received at or after, and before. */
  since?: string;
  until?: string;
  /** Events per page. */
  limit?: number;
}

/** Webhook events as they were stored. Replaying and discarding need a key with `reviews:write`. */
export interface Inbox {
  /** The newest first. */
  inbox(filter?: InboxFilter, options?: CallOptions): AsyncGenerator<InboxEvent>;
  /** One event with its tickets, its request, and what a replay would do now; never its bytes. */
  inboxEvent(inboxId: string, options?: CallOptions): Promise<InboxDetail>;
  /** Makes an event due again. Pressing twice is no error: `replayed` is false, with the reason. Throws `body-erased`. */
  replayEvent(inboxId: string, who: string, options?: CallOptions): Promise<InboxReplayAnswer>;
  /**
   * Makes all that match due again, or says what that would do. One try only, unless it is a dry run or names its events:
   * a second could take the next ones beyond the limit.
   */
  replayEvents(request: BulkReplayRequest, options?: CallOptions): Promise<BulkReplayAnswer>;
  /**
   * Ends an event that nobody will apply; who and why stay. Throws `event-is-settled` where it is not a person's; a try
   * whose answer was lost may come back as that, with the `eventStatus` DISCARDED.
   */
  discardEvent(inboxId: string, decision: { who: string; why: string }, options?: CallOptions): Promise<void>;
}

const nothing = z.undefined();
const at = (id: string, more = ""): string => `/v1/inbox/${encodeURIComponent(id)}${more}`;

/** The inbox over one HTTP client. */
export function inboxOver(http: HttpClient): Inbox {
  const post = <Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    body: object,
    options: CallOptions | undefined,
    repeatable = true,
  ) =>
    http.call({
      method: "POST",
      path,
      schema,
      body: JSON.stringify(body),
      contentType: "application/json",
      options,
      repeatable,
    });
  return {
    inbox: (filter, options) => allEvents(http, filter, options),
    inboxEvent: (id, options) => http.call({ method: "GET", path: at(id), schema: inboxDetail, options }),
    replayEvent: (id, who, options) => post(at(id, "/replay"), inboxReplayAnswer, { who }, options),
    replayEvents: (request, options) =>
      post(
        "/v1/inbox/replay",
        inboxBulkReplayAnswer,
        request,
        options,
        request.dryRun === true || request.ids !== undefined,
      ),
    discardEvent: (id, decision, options) => post(at(id, "/discard"), nothing, decision, options),
  };
}

async function* allEvents(
  http: HttpClient,
  { status = [], ...filter }: InboxFilter = {},
  options?: CallOptions,
): AsyncGenerator<InboxEvent> {
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams();
    for (const each of status) query.append("status", each);
    for (const [name, value] of Object.entries({ ...filter, cursor })) {
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    const page: z.output<typeof inboxPage> = await http.call({
      method: "GET",
      path: `/v1/inbox?${query.toString()}`,
      schema: inboxPage,
      options,
    });
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor !== null);
}
