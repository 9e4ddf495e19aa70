import type { z } from "zod";
import { CountersignProblem, RetriesExhaustedError } from "./errors.js";
import { maxTries, networkErrorWaitMs, pause, waitBeforeRetry } from "./retry.js";
import { problem } from "./schema.js";

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

interface Request {
  method: string;
  path: string;
  body?: Uint8Array | string;
  contentType?: string;
  headers?: Record<string, string>;
  options: CallOptions | undefined;
  /** false: not made again after a try without an answer, because making it twice is not making it once. */
  repeatable?: boolean;
}

/** One request; its answer is checked against `schema`. */
export interface Call<Schema extends z.ZodType> extends Request {
  schema: Schema;
}

const defaultTimeoutMs = 30_000;
/** The longest time that the server holds an answer. */
export const longestWaitSeconds = 60;

/** Makes each request until it is answered: at most five tries. Any answer of the API is returned or thrown at once. */
export class HttpClient {
  readonly #options: ClientOptions;
  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The answer, read as JSON; undefined where the answer has no content. */
  async call<Schema extends z.ZodType>(call: Call<Schema>): Promise<z.output<Schema>> {
    const answer = await this.#until(call, (bytes): unknown =>
      bytes.length === 0 ? undefined : JSON.parse(bytes.toString()),
    );
    return call.schema.parse(answer);
  }

  /** The bytes of the answer. */
  async bytes(request: Request): Promise<Uint8Array> {
    return await this.#until(request, (bytes) => bytes);
  }

  async #until<Answer>(request: Request, read: (bytes: Buffer) => Answer): Promise<Answer> {
    const wait = this.#options.pause ?? pause;
    const tries = request.repeatable === false ? 1 : maxTries;
    let last: unknown;
    for (let made = 1; made <= tries; made += 1) {
      let again: number;
      try {
        const answer = await this.#once(request, read);
        if (answer.ok) return answer.body;
        last = answer.error;
        const code = answer.error.problem.type.split("/").at(-1);
        const retry = waitBeforeRetry(answer.error.status, code, answer.retryAfter);
        if (retry === undefined || tries === 1) throw answer.error;
        again = retry;
      } catch (error) {
        if (error instanceof CountersignProblem || request.options?.signal?.aborted === true) throw error;
        if (!isNetworkError(error)) throw error;
        last = error;
        again = networkErrorWaitMs;
      }
      if (made < tries) await wait(again, request.options?.signal);
    }
    throw new RetriesExhaustedError(
      tries,
      last,
      tries === 1 ? "it may have been done: look before asking again" : undefined,
    );
  }

  async #once<Answer>(request: Request, read: (bytes: Buffer) => Answer) {
    const { options } = request;
    const waitSeconds = Math.min(options?.waitSeconds ?? 0, longestWaitSeconds);
    const deadline = AbortSignal.timeout((this.#options.timeoutMs ?? defaultTimeoutMs) + waitSeconds * 1_000);
    const response = await (this.#options.fetch ?? fetch)(new URL(request.path, this.#options.baseUrl), {
      method: request.method,
      redirect: "error",
      signal: options?.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]),
      headers: {
        accept: "application/json",
        authorization: `Bearer ${this.#options.apiKey}`,
        ...(request.contentType === undefined ? {} : { "content-type": request.contentType }),
        ...(waitSeconds === 0 ? {} : { prefer: `wait=${waitSeconds}` }),
        ...request.headers,
      },
      ...(request.body === undefined ? {} : { body: request.body }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.ok) return { ok: true as const, body: read(bytes) };
    return {
      ok: false as const,
      retryAfter: response.headers.get("retry-after"),
      error: new CountersignProblem(readProblem(response.status, bytes.toString())),
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
