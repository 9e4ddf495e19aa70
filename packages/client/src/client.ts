import type { z } from "zod";
import { CountersignProblem, RetriesExhaustedError } from "./errors.js";
import { maxTries, networkErrorWaitMs, pause, waitBeforeRetry } from "./retry.js";
import {
  documentAnswer,
  type OperationAnswer,
  type OperationRequest,
  operation,
  operationPage,
  type PlanAnswer,
  planAnswer,
  problem,
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

export interface ClientOptions {
  /** Where the enqueuer listens, e.g. `https://countersign.internal`. */
  baseUrl: string;
  /** `csk_…`. */
  apiKey: string;
  /** Longest time of one try in ms, beside what the request itself waits; 30 s when left out. */
  timeoutMs?: number;
  fetch?: typeof fetch;
  /** Waits between tries; for tests. */
  pause?: typeof pause;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Hold the answer until the operation is resolved, up to this many seconds (60 at most). */
  waitSeconds?: number;
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

export interface Countersign {
  /** Uploads a PDF; content-addressed, so doing it twice is doing it once. */
  putDocument(bytes: Uint8Array, options?: CallOptions): Promise<{ sha256: string; size: number }>;
  /** Records an intent, once per intent key. Resolves when it is committed (or, with `waitSeconds`, resolved). */
  plan(intent: Intent, options?: CallOptions): Promise<Known<PlanAnswer>>;
  get(operationId: string, options?: CallOptions): Promise<Known>;
  list(filter?: ListFilter, options?: CallOptions): AsyncGenerator<Known>;
  /** Waits until the operation is final or needs a person; throws after `timeoutMs`. */
  waitFor(operationId: string, options: { timeoutMs: number; signal?: AbortSignal }): Promise<Known>;
}

interface Call<Schema extends z.ZodType> {
  method: string;
  path: string;
  schema: Schema;
  body?: Uint8Array | string;
  contentType?: string;
  headers?: Record<string, string>;
  options: CallOptions | undefined;
}

const defaultTimeoutMs = 30_000;
const longestWaitSeconds = 60;

class HttpClient {
  readonly #options: ClientOptions;
  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** At most five tries; the intent key makes every one of them safe. Any other answer is returned or thrown at once. */
  async call<Schema extends z.ZodType>(call: Call<Schema>): Promise<z.output<Schema>> {
    const wait = this.#options.pause ?? pause;
    let last: unknown;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      let again: number;
      try {
        const answer = await this.#once(call);
        if (answer.ok) return call.schema.parse(answer.body);
        last = answer.error;
        const code = answer.error.problem.type.split("/").at(-1);
        const retry = waitBeforeRetry(answer.error.status, code, answer.retryAfter);
        if (retry === undefined) throw answer.error;
        again = retry;
      } catch (error) {
        if (error instanceof CountersignProblem || call.options?.signal?.aborted === true) throw error;
        if (!isNetworkError(error)) throw error;
        last = error;
        again = networkErrorWaitMs;
      }
      if (tries < maxTries) await wait(again, call.options?.signal);
    }
    throw new RetriesExhaustedError(maxTries, last);
  }

  async #once<Schema extends z.ZodType>(call: Call<Schema>) {
    const { options } = call;
    const waitSeconds = Math.min(options?.waitSeconds ?? 0, longestWaitSeconds);
    const deadline = AbortSignal.timeout((this.#options.timeoutMs ?? defaultTimeoutMs) + waitSeconds * 1_000);
    const response = await (this.#options.fetch ?? fetch)(new URL(call.path, this.#options.baseUrl), {
      method: call.method,
      redirect: "error",
      signal: options?.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]),
      headers: {
        accept: "application/json",
        authorization: `Bearer ${this.#options.apiKey}`,
        ...(call.contentType === undefined ? {} : { "content-type": call.contentType }),
        ...(waitSeconds === 0 ? {} : { prefer: `wait=${waitSeconds}` }),
        ...call.headers,
      },
      ...(call.body === undefined ? {} : { body: call.body }),
    });
    const text = await response.text();
    if (response.ok) return { ok: true as const, body: JSON.parse(text) as unknown };
    return {
      ok: false as const,
      retryAfter: response.headers.get("retry-after"),
      error: new CountersignProblem(readProblem(response.status, text)),
    };
  }
}

/** fetch reports what never became an answer as a TypeError; a time-out as a TimeoutError; a cut body as either. */
function isNetworkError(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof SyntaxError ||
    (error instanceof Error && error.name === "TimeoutError")
  );
}

function readProblem(status: number, text: string) {
  try {
    const parsed = problem.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
  } catch (error) {
    // A proxy's page instead of ours: the status is all there is.
    if (!(error instanceof SyntaxError)) throw error;
  }
  return { type: "about:blank", title: "not an answer of Countersign", status };
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
    putDocument: (bytes, call) =>
      http.call({
        method: "PUT",
        path: "/v1/documents",
        schema: documentAnswer,
        body: bytes,
        contentType: "application/pdf",
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
