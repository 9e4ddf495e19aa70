import { Agent, type Dispatcher } from "undici";

/** How the sockets to a provider are kept. All times in milliseconds. */
export interface HttpTransportOptions {
  /** Sockets per origin. A call beyond that waits for a free one, inside its own deadline. */
  connections?: number;
  /**
   * An idle socket is closed by us after this. Below the provider's own idle limit, or the next POST races its FIN and
   * ends ambiguous for no reason.
   */
  keepAliveMs?: number;
  /** Time for DNS, TCP and TLS together; the call's deadline ends it earlier. */
  connectTimeoutMs?: number;
  /** Additional certificate authorities (PEM), for a provider behind a private one. */
  ca?: string;
}

/** One HTTP call. Nothing in it is logged. */
export interface HttpCall {
  method: Dispatcher.HttpMethod;
  /** Origin and optional path prefix, without credentials, query or fragment. */
  baseUrl: string;
  /** Begins with "/", already encoded, may carry a query. */
  path: string;
  headers: Record<string, string>;
  body?: Uint8Array;
  /** From the call of `send`: covers waiting for a socket, connecting, writing and every byte of the answer. */
  deadlineMs: number;
  /** Asked directly before the request head and before each further slice of the body. false: nothing (more) is written. */
  mayWrite(): boolean;
  signal?: AbortSignal;
  /** Larger answers end as `too-large`. Default 1 MiB. */
  maxResponseBytes?: number;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What became of one call. Causes are machine tokens without host names, addresses or content. */
export type CallOutcome =
  /** The answer came to its declared end. Names of headers are in lower case. */
  | { kind: "response"; status: number; headers: ResponseHeaders; body: Uint8Array; receivedAtMs: number }
  /** No byte of the request left this process. */
  | { kind: "nothing-written"; cause: string }
  /** Some of the request may have left. `status` where a status line had come (an answer that ended early). */
  | { kind: "after-write"; cause: string; status?: number; headers?: ResponseHeaders; receivedAtMs: number }
  /** The answer exceeded the cap. */
  | { kind: "too-large"; status: number };

/**
 * undici's `dispatch` as it is documented: the body may be an async iterable, which it pulls only when the socket takes
 * more, so that each slice is asked for directly before it is written. Its own types leave that out.
 */
interface IterableDispatcher {
  dispatch(
    options: Omit<Agent.DispatchOptions, "body"> & {
      body?: Dispatcher.DispatchOptions["body"] | AsyncIterable<Uint8Array>;
    },
    handler: Dispatcher.DispatchHandler,
  ): boolean;
}

const SLICE_BYTES = 64 * 1024;
const DEFAULT_MAX_RESPONSE_BYTES = 1024 * 1024;

/** Ends a request that undici has begun to write; never leaves this file. */
class WriteStopped extends Error {
  override readonly name = "WriteStopped";
}

/**
 * Calls over an own pool per origin: no retry, no redirect, no pipelining, no proxy, never the global dispatcher. One
 * instance per process and provider; `close` when the process stops.
 */
export class HttpTransport {
  readonly #agent: Agent;

  constructor(options: HttpTransportOptions = {}) {
    const keepAliveMs = options.keepAliveMs ?? 4_000;
    this.#agent = new Agent({
      connections: options.connections ?? 32,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      // Also where the provider's own Keep-Alive header offers more.
      keepAliveMaxTimeout: keepAliveMs,
      // The call's own deadline is the only clock: these two restart with every chunk.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: options.connectTimeoutMs ?? 10_000,
        ...(options.ca === undefined ? {} : { ca: options.ca }),
      },
    });
  }

  /** One call, never more than one arrival. Never rejects. */
  send(call: HttpCall): Promise<CallOutcome> {
    const target = resolveTarget(call.baseUrl, call.path);
    if (target === undefined) return Promise.resolve({ kind: "nothing-written", cause: "bad-base-url" });
    if (call.signal?.aborted === true) return Promise.resolve({ kind: "nothing-written", cause: "aborted" });
    return new Promise((resolve) => {
      const exchange = new Exchange(call, resolve);
      exchange.dispatch(this.#agent, target);
    });
  }

  /** Ends idle sockets and waits for running calls. */
  async close(): Promise<void> {
    await this.#agent.close();
  }
}

/** State of one call: undici's handler, the deadline and the guard of every write in one place. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #call: HttpCall;
  readonly #resolve: (outcome: CallOutcome) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = () => this.#stop("aborted");
  readonly #maxBytes: number;
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  /** A byte has been, or is just about to be, handed to the socket. */
  #wrote = false;
  #status: number | undefined;
  #headers: ResponseHeaders = {};
  #chunks: Buffer[] = [];
  #received = 0;

  constructor(call: HttpCall, resolve: (outcome: CallOutcome) => void) {
    this.#call = call;
    this.#resolve = resolve;
    this.#maxBytes = call.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES;
    this.#timer = setTimeout(() => this.#stop("deadline"), Math.max(0, call.deadlineMs));
    call.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  dispatch(agent: IterableDispatcher, target: { origin: string; path: string }): void {
    const { body, method, headers } = this.#call;
    const sliced = body !== undefined && body.byteLength > SLICE_BYTES;
    try {
      agent.dispatch(
        {
          origin: target.origin,
          path: target.path,
          method,
          // GET too: undici may put an idempotent request behind another one; nothing of ours is ever repeated.
          idempotent: false,
          blocking: true,
          headers: sliced ? { ...headers, "content-length": String(body.byteLength) } : headers,
          body: sliced ? this.#slices(body) : (body ?? null),
        },
        this,
      );
    } catch (error) {
      this.#fail(causeOf(error));
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#settled) {
      // The deadline passed while it waited for a socket.
      controller.abort(new WriteStopped());
      return;
    }
    if (this.#controller !== undefined) {
      // undici documents that a request may be started again; ours may not.
      controller.abort(new WriteStopped());
      this.#fail("second-start");
      return;
    }
    this.#controller = controller;
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      this.#fail(refusal);
      controller.abort(new WriteStopped());
      return;
    }
    // A sliced body marks this itself: undici writes the head together with the first slice.
    if ((this.#call.body?.byteLength ?? 0) <= SLICE_BYTES) this.#wrote = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, statusCode: number, headers: ResponseHeaders): void {
    this.#status = statusCode;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received += chunk.byteLength;
    if (this.#received > this.#maxBytes) {
      this.#settle({ kind: "too-large", status: this.#status ?? 0 });
      controller.abort(new WriteStopped());
      return;
    }
    this.#chunks.push(Buffer.from(chunk));
  }

  onResponseEnd(): void {
    this.#settle({
      kind: "response",
      status: this.#status ?? 0,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks),
      receivedAtMs: Date.now(),
    });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(causeOf(error));
  }

  async *#slices(body: Uint8Array): AsyncGenerator<Uint8Array> {
    for (let offset = 0; offset < body.byteLength; offset += SLICE_BYTES) {
      const refusal = this.#settled ? "settled" : this.#refusal();
      if (refusal !== undefined) {
        this.#fail(refusal);
        throw new WriteStopped();
      }
      this.#wrote = true;
      yield body.subarray(offset, offset + SLICE_BYTES);
    }
  }

  #refusal(): string | undefined {
    try {
      return this.#call.mayWrite() ? undefined : "write-not-allowed";
    } catch {
      // A guard that cannot answer has not allowed anything.
      return "write-guard-failed";
    }
  }

  #stop(cause: string): void {
    this.#fail(cause);
    this.#controller?.abort(new WriteStopped());
  }

  #fail(cause: string): void {
    if (!this.#wrote) {
      this.#settle({ kind: "nothing-written", cause });
      return;
    }
    const answered = this.#status === undefined ? {} : { status: this.#status, headers: this.#headers };
    this.#settle({ kind: "after-write", cause, receivedAtMs: Date.now(), ...answered });
  }

  #settle(outcome: CallOutcome): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#call.signal?.removeEventListener("abort", this.#onAbort);
    this.#chunks = [];
    this.#resolve(outcome);
  }
}

function resolveTarget(baseUrl: string, path: string): { origin: string; path: string } | undefined {
  if (!path.startsWith("/") || !URL.canParse(baseUrl)) return undefined;
  const url = new URL(baseUrl);
  const plain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!plain || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
  return { origin: url.origin, path: `${url.pathname.replace(/\/+$/, "")}${path}` };
}

/** The code of an error (of the first inner one for an aggregate), never its text: texts name hosts and addresses. */
function causeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return causeOf(error.errors[0]);
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.name : "unknown-error";
}
