import type { z } from "zod";
import { type Decisions, decisionsOver } from "./decisions.js";
import { RetriesExhaustedError } from "./errors.js";
import { type CallOptions, type ClientOptions, HttpClient, longestWaitSeconds } from "./http-client.js";
import { type Inbox, inboxOver } from "./inbox.js";
import {
  documentAnswer,
  type OperationAnswer,
  type OperationRequest,
  operation,
  operationPage,
  type PlanAnswer,
  planAnswer,
} from "./schema.js";

/** An operation by the answer to the one question, so that a `switch` over `sent` must handle the third branch. */
export type Known<Answer extends OperationAnswer = OperationAnswer> =
  | (Omit<Answer, "sent"> & { sent: "yes" })
  | (Omit<Answer, "sent"> & { sent: "no" })
  | (Omit<Answer, "sent"> & { sent: "unknown" });

/** What to do in each of the three cases; `unknown` can't be left out. */
export interface Branches<Result> {
  yes(operation: OperationAnswer): Result;
  no(operation: OperationAnswer): Result;
  unknown(operation: OperationAnswer): Result;
}

export function match<Result>(answer: OperationAnswer, branches: Branches<Result>): Result {
  return branches[answer.sent](answer);
}

/** A request with its intent key: the producer's own name for what it means to do, the same on every try. */
export type Intent = OperationRequest & { intentKey: string };

export interface ListFilter {
  state?: string;
  intentKey?: string;
  action?: string;
  connection?: string;
  limit?: number;
}

export interface Countersign extends Decisions, Inbox {
  /** Uploads a PDF; content-addressed, so doing it twice is doing it once. */
  putDocument(bytes: Uint8Array, options?: CallOptions): Promise<{ sha256: string; size: number }>;
  /** The bytes of a stored PDF: an uploaded one, or the sealed one that an operation's `archive` names. */
  getDocument(sha256: string, options?: CallOptions): Promise<Uint8Array>;
  /** Records an intent, once per intent key. Resolves when it is committed (or, with `waitSeconds`, resolved). */
  plan(intent: Intent, options?: CallOptions): Promise<Known<PlanAnswer>>;
  get(operationId: string, options?: CallOptions): Promise<Known>;
  list(filter?: ListFilter, options?: CallOptions): AsyncGenerator<Known>;
  /** Waits until the operation is final or needs a person; throws after `timeoutMs`. */
  waitFor(operationId: string, options: { timeoutMs: number; signal?: AbortSignal }): Promise<Known>;
}

/** A client for one tenant's API key. Throws `CountersignProblem`, or `RetriesExhaustedError` when nothing answered. */
export function createClient(options: ClientOptions): Countersign {
  const http = new HttpClient(options);
  const get = (operationId: string, call?: CallOptions): Promise<Known> =>
    http.call({
      method: "GET",
      path: `/v1/operations/${encodeURIComponent(operationId)}`,
      schema: operation,
      options: call,
    });
  return {
    ...decisionsOver(http),
    ...inboxOver(http),
    putDocument: (bytes, call) =>
      http.call({
        method: "PUT",
        path: "/v1/documents",
        schema: documentAnswer,
        body: bytes,
        contentType: "application/pdf",
        options: call,
      }),
    getDocument: (sha256, call) =>
      http.bytes({
        method: "GET",
        path: `/v1/documents/${encodeURIComponent(sha256)}`,
        headers: { accept: "application/pdf" },
        options: call,
      }),
    plan: (intent, call) =>
      http.call({
        method: "POST",
        path: "/v1/operations",
        schema: planAnswer,
        body: JSON.stringify(intent),
        contentType: "application/json",
        headers: { "idempotency-key": intent.intentKey },
        options: call,
      }),
    get,
    async *list(filter = {}, call) {
      let cursor: string | null = null;
      do {
        const query = new URLSearchParams();
        for (const [name, value] of Object.entries({ ...filter, ...(cursor === null ? {} : { cursor }) })) {
          if (value !== undefined) query.set(name, String(value));
        }
        const page: z.output<typeof operationPage> = await http.call({
          method: "GET",
          path: `/v1/operations?${query.toString()}`,
          schema: operationPage,
          options: call,
        });
        yield* page.data;
        cursor = page.nextCursor;
      } while (cursor !== null);
    },
    async waitFor(operationId, { timeoutMs, signal }) {
      const end = performance.now() + timeoutMs;
      for (;;) {
        const left = Math.ceil((end - performance.now()) / 1_000);
        const answer = await get(operationId, {
          waitSeconds: Math.max(1, Math.min(left, longestWaitSeconds)),
          ...(signal === undefined ? {} : { signal }),
        });
        if (answer.finishedAt !== null || answer.state === "NEEDS_REVIEW") return answer;
        if (performance.now() >= end) throw new RetriesExhaustedError(1, `still ${answer.state}`);
      }
    },
  };
}
