import { type Check, type Logger, type Metrics, readiness } from "@countersign/runtime";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { IngressMetrics, IngressOutcome } from "./ingress-metrics.js";
import type { Headers } from "./read-delivery.js";
import { type Answer, couldBeEndpoint } from "./receive.js";
import { encodingOf } from "./unpack.js";

export interface IngressOptions {
  receive(endpointId: string, body: Buffer, headers: Headers): Promise<Answer>;
  readonly logger: Logger;
  /** The registry served at `/metrics`. */
  readonly registry: Metrics;
  readonly metrics: IngressMetrics;
  readonly checks: readonly Check[];
  /** Bytes. */
  readonly bodyLimit: number;
  /** Longest time for head and body, ms. */
  readonly receiveTimeoutMs: number;
  /** Answered by then, counted from the head, or 503; ms. */
  readonly ackTimeoutMs: number;
  /** Deliveries in hand at once, those included that outlived their answer. */
  readonly maxInFlight: number;
  /** Bytes of their bodies, as announced; a body that doesn't say counts as the largest one allowed. */
  readonly maxBytesInFlight: number;
}

/** What a sender that is told to come back should wait, in seconds. */
const retryAfterSeconds = 5;

const texts: Record<number, string> = {
  200: "ok",
  400: "bad request",
  401: "unauthorized",
  404: "not found",
  408: "too slow",
  413: "too large",
  415: "content-encoding is not supported",
  503: "try again later",
};

/**
 * The HTTP face of the inbox: `POST /webhooks/:endpointId`, `/healthz`, `/readyz`, `/metrics`. Bodies stay the bytes
 * that came, whatever their content type. There is no access log: the path is the endpoint's unguessable id.
 */
export function buildIngress(options: IngressOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: options.bodyLimit,
    requestTimeout: options.receiveTimeoutMs,
    forceCloseConnections: "idle",
    routerOptions: { maxParamLength: 100 },
    http: {
      headersTimeout: options.receiveTimeoutMs,
      // Node looks for overdue requests only this often.
      connectionsCheckingInterval: Math.min(1_000, options.receiveTimeoutMs),
    },
  });
  lastAnswersClose(app);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setNotFoundHandler((_request, reply) => say(reply, 404));
  app.setErrorHandler((error, _request, reply) => refuse(options, error, reply));
  app.get("/healthz", () => ({ ok: true }));
  app.get("/readyz", async (_request, reply) => {
    const state = await readiness(options.checks);
    return reply
      .code(state.ready ? 200 : 503)
      .header("cache-control", "no-store")
      .send(state);
  });
  app.get("/metrics", async (_request, reply) => {
    const { contentType, body } = await options.registry.render();
    return reply.header("content-type", contentType).send(body);
  });
  addDeliveries(app, options);
  return app;
}

/**
 * A delivery that is in hand when the process stops ends its connection with its answer: kept open, the connection would
 * hold the stop until its sender leaves.
 */
function lastAnswersClose(app: FastifyInstance): void {
  let closing = false;
  app.addHook("preClose", async () => {
    closing = true;
  });
  app.addHook("onSend", async (_request, reply) => {
    if (closing) reply.header("connection", "close");
  });
}

function addDeliveries(app: FastifyInstance, options: IngressOptions): void {
  const { metrics } = options;
  const inHand = new InHand(options.maxInFlight, options.maxBytesInFlight);
  const arrivals = new WeakMap<FastifyRequest, { at: number; hold: Hold }>();

  app.route<{ Params: { endpointId: string } }>({
    method: "POST",
    url: "/webhooks/:endpointId",
    onRequest: async (request, reply) => {
      const bytes = expectedBytes(request, options.bodyLimit);
      const refusal = refusalBeforeBody(request, inHand, bytes);
      if (refusal !== undefined) {
        metrics.deliveries.inc({ outcome: refusal.outcome });
        return say(reply, refusal.status);
      }
      const hold = inHand.take(bytes);
      arrivals.set(request, { at: performance.now(), hold });
      // "close" comes after every answer, and also when the sender hangs up before it.
      reply.raw.once("close", () => hold.release());
      // Fastify refuses a malformed content type before any parser runs; here it means nothing.
      request.raw.headers["content-type"] = "application/octet-stream";
    },
    handler: async (request, reply) => {
      const { at, hold } = arrivals.get(request) ?? { at: performance.now(), hold: inHand.take(options.bodyLimit) };
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      hold.add();
      const received = options.receive(request.params.endpointId, body, request.headers);
      const answer = await answerInTime(
        options,
        received.finally(() => hold.release()),
        at + options.ackTimeoutMs - performance.now(),
      );
      metrics.deliveries.inc({ outcome: answer.outcome });
      metrics.seconds.observe((performance.now() - at) / 1_000);
      return say(reply, answer.status, answer.acknowledgement);
    },
  });
}

/** What a delivery may come to in memory: what it announces, or the limit; one that is still to be unpacked counts as that. */
function expectedBytes(request: FastifyRequest, limit: number): number {
  const announced = Number(request.headers["content-length"] ?? Number.NaN);
  const packed = encodingOf(request.headers["content-encoding"]) === "gzip";
  return Number.isFinite(announced) && !packed ? Math.min(announced, limit) : limit;
}

/** The deliveries in hand: each until its socket is done with and its work has ended, whichever is later. */
class InHand {
  readonly #max: number;
  readonly #maxBytes: number;
  #count = 0;
  #bytes = 0;
  constructor(max: number, maxBytes: number) {
    this.#max = max;
    this.#maxBytes = maxBytes;
  }

  /** Whether one more of this size would be too much; one alone always has a place. */
  isFullFor(bytes: number): boolean {
    return this.#count >= this.#max || (this.#count > 0 && this.#bytes + bytes > this.#maxBytes);
  }

  take(bytes: number): Hold {
    this.#count += 1;
    this.#bytes += bytes;
    return new Hold(() => {
      this.#count -= 1;
      this.#bytes -= bytes;
    });
  }
}

/** One delivery's place, given back when all who hold it have released it. */
class Hold {
  readonly #giveBack: () => void;
  #holders = 1;
  constructor(giveBack: () => void) {
    this.#giveBack = giveBack;
  }

  add(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#giveBack();
  }
}

interface Refusal {
  readonly status: 404 | 415 | 503;
  readonly outcome: IngressOutcome;
}

function refusalBeforeBody(
  request: FastifyRequest<{ Params: { endpointId: string } }>,
  inHand: InHand,
  bytes: number,
): Refusal | undefined {
  if (inHand.isFullFor(bytes)) return { status: 503, outcome: "overloaded" };
  if (!couldBeEndpoint(request.params.endpointId)) return { status: 404, outcome: "unknown-endpoint" };
  // Gzip is the endpoint's own choice, known only once it is read.
  if (encodingOf(request.headers["content-encoding"]) === "other") return { status: 415, outcome: "unsupported" };
  return undefined;
}

type Acknowledged = Omit<Answer, "status"> & { status: Answer["status"] | 503 };

/**
 * The answer, or 503 when storing failed or took too long. A statement that commits later still stands: the sender's next
 * attempt is a duplicate and is acknowledged as one.
 */
async function answerInTime(options: IngressOptions, received: Promise<Answer>, ms: number): Promise<Acknowledged> {
  const { logger } = options;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Acknowledged>((resolve) => {
    timer = setTimeout(() => resolve({ status: 503, outcome: "late" }), Math.max(1, ms));
  });
  const stored = received.catch((error: unknown): Acknowledged => {
    logger.error({ err: error }, "webhook not stored: answered 503");
    return { status: 503, outcome: "failed" };
  });
  try {
    return await Promise.race([stored, late]);
  } finally {
    clearTimeout(timer);
  }
}

function refuse({ metrics, logger }: IngressOptions, error: unknown, reply: FastifyReply): FastifyReply {
  const status = statusOf(error);
  if (status === 413) metrics.deliveries.inc({ outcome: "too-large" });
  else if (status !== undefined) metrics.deliveries.inc({ outcome: "bad-request" });
  else {
    metrics.deliveries.inc({ outcome: "failed" });
    logger.error({ err: error }, "webhook ingress failed: answered 503");
  }
  return say(reply, status ?? 503);
}

/** Fastify's own 4xx for what is wrong with the request; anything else is our fault. */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return undefined;
  const { statusCode } = error;
  return typeof statusCode === "number" && statusCode >= 400 && statusCode < 500 ? statusCode : undefined;
}

function say(reply: FastifyReply, status: number, acknowledgement?: Answer["acknowledgement"]): FastifyReply {
  if (status === 503) reply.header("retry-after", String(retryAfterSeconds));
  // Part of the body may still be on its way, and nobody reads it.
  if (status === 413 || status === 415) reply.header("connection", "close");
  return reply
    .code(status)
    .type(acknowledgement?.contentType ?? "text/plain; charset=utf-8")
    .send(acknowledgement?.text ?? texts[status] ?? "refused");
}
