import { z } from "zod";
import type { CallOptions, HttpClient } from "./http-client.js";
import {
  holdAnswer,
  holdPage,
  type holdRequest,
  policyAnswer,
  policyPage,
  type policyRequest,
  reviewAnswer,
  type reviewRequest,
  ticketDecideAnswer,
  ticketDetail,
  ticketPage,
} from "./schema.js";

/** A person's decision on an operation in NEEDS_REVIEW: `evidenceNo` is the operation's as that person saw it. */
export type ReviewDecision = z.input<typeof reviewRequest>;
export type ReviewAnswer = z.output<typeof reviewAnswer>;
export type Ticket = z.output<typeof ticketPage>["data"][number];
export type TicketDetail = z.output<typeof ticketDetail>;
export type HoldRequest = z.input<typeof holdRequest>;
export type PolicyRequest = z.input<typeof policyRequest>;

export interface TicketFilter {
  /** `open` when left out. */
  status?: "open" | "closed" | "all";
  kind?: string;
  /** Tickets per page. */
  limit?: number;
}

/**
 * What people decide. Deciding needs a key with `reviews:write`, holds and policies one with `tenant:admin`; each names who
 * (an opaque id) and why (kept for ever, so no names or addresses).
 */
export interface Decisions {
  /**
   * Decides an operation in NEEDS_REVIEW. Throws the problems `not-in-review` (with `decidedBy`), `evidence-moved` (look
   * again), `too-early`, `dependants-undecided`. A try whose answer was lost may come back as `not-in-review`, decided by you.
   */
  review(operationId: string, decision: ReviewDecision, options?: CallOptions): Promise<ReviewAnswer>;
  /** The most urgent first; closed ones the last closed first. */
  tickets(filter?: TicketFilter, options?: CallOptions): AsyncGenerator<Ticket>;
  /** One ticket, with what its decision needs: references, who waits, and what each decision would do. */
  ticket(ticketId: string, options?: CallOptions): Promise<TicketDetail>;
  /** Closes a ticket. Reviews and duplicates are decided instead. */
  resolveTicket(ticketId: string, closing: { who: string; resolution: string }, options?: CallOptions): Promise<void>;
  /** Decides a `duplicate` ticket: which reference stays; null keeps none. */
  decideTicket(
    ticketId: string,
    decision: { keep: string | null; evidenceNo: number; who: string; why: string },
    options?: CallOptions,
  ): Promise<z.output<typeof ticketDecideAnswer>>;
  holds(options?: CallOptions): Promise<z.output<typeof holdPage>["data"]>;
  /** Stops sending; planning goes on. One try only: a second would be a second hold. */
  hold(request: HoldRequest, options?: CallOptions): Promise<{ holdId: string }>;
  releaseHold(holdId: string, who: string, options?: CallOptions): Promise<void>;
  policies(options?: CallOptions): Promise<z.output<typeof policyPage>["data"]>;
  /** Puts a policy in force. One try only: a second would be a second policy. */
  writePolicy(request: PolicyRequest, options?: CallOptions): Promise<{ policyId: string }>;
  revokePolicy(policyId: string, who: string, options?: CallOptions): Promise<void>;
}

const nothing = z.undefined();
const at = (kind: string, id: string, more = ""): string => `/v1/${kind}/${encodeURIComponent(id)}${more}`;
const by = (who: string): string => `?${new URLSearchParams({ who }).toString()}`;

/** The decisions over one HTTP client. */
export function decisionsOver(http: HttpClient): Decisions {
  const get = <Schema extends z.ZodType>(path: string, schema: Schema, options: CallOptions | undefined) =>
    http.call({ method: "GET", path, schema, options });
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
    review: (id, decision, options) => post(at("operations", id, "/review"), reviewAnswer, decision, options),
    tickets: (filter, options) => allTickets(http, filter, options),
    ticket: (id, options) => get(at("tickets", id), ticketDetail, options),
    resolveTicket: (id, closing, options) => post(at("tickets", id, "/resolve"), nothing, closing, options),
    decideTicket: (id, decision, options) => post(at("tickets", id, "/decide"), ticketDecideAnswer, decision, options),
    holds: async (options) => (await get("/v1/holds", holdPage, options)).data,
    hold: (request, options) => post("/v1/holds", holdAnswer, request, options, false),
    releaseHold: (id, who, options) =>
      http.call({ method: "DELETE", path: at("holds", id, by(who)), schema: nothing, options }),
    policies: async (options) => (await get("/v1/policies", policyPage, options)).data,
    writePolicy: (request, options) => post("/v1/policies", policyAnswer, request, options, false),
    revokePolicy: (id, who, options) =>
      http.call({ method: "DELETE", path: at("policies", id, by(who)), schema: nothing, options }),
  };
}

async function* allTickets(http: HttpClient, filter: TicketFilter = {}, options?: CallOptions): AsyncGenerator<Ticket> {
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...filter, cursor })) {
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    const page: z.output<typeof ticketPage> = await http.call({
      method: "GET",
      path: `/v1/tickets?${query.toString()}`,
      schema: ticketPage,
      options,
    });
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor !== null);
}
