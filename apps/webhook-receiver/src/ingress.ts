import { type Check, type Logger, type Metrics, readiness } from "@countersign/runtime";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { IngressMetrics, IngressOutcome } from "./ingress-metrics.js";
import type { Headers } from "./read-delivery.js";
import { type Answer, couldBeEndpoint } from "./receive.js";

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

function addDeliveries(app: FastifyInstance, options: IngressOptions): void {
  const { metrics } = options;
  const inHand = new InHand(options.maxInFlight);
  const arrivals = new WeakMap<FastifyRequest, { at: number; hold: Hold }>();

  app.route<{ Params: { endpointId: string } }>({
    method: "POST",
    url: "/webhooks/:endpointId",
    onRequest: async (request, reply) => {
      const refusal = refusalBeforeBody(request, inHand);
      if (refusal !== undefined) {
        metrics.deliveries.inc({ outcome: refusal.outcome });
        return say(reply, refusal.status);
      }
      const hold = inHand.take();
      arrivals.set(request, { at: performance.now(), hold });
      // "close" comes after every answer, and also when the sender hangs up before it.
      reply.raw.once("close", () => hold.release());
      // Fastify refuses a malformed content type before any parser runs; here it means nothing.
      request.raw.headers["content-type"] = "application/octet-stream";
    },
    handler: async (request, reply) => {
      const { at, hold } = arrivals.get(request) ?? { at: performance.now(), hold: inHand.take() };
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
      return say(reply, answer.status);
    },
  });
}

/** The deliveries in hand: each until its socket is done with and its work has ended, whichever is later. */
class InHand {
  readonly #max: number;
  #count = 0;
  constructor(max: number) {
    this.#max = max;
  }

  get full(): boolean {
    return this.#count >= this.#max;
  }

  take(): Hold {
    this.#count += 1;
    return new Hold(() => {
      this.#count -= 1;
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
): Refusal | undefined {
  if (inHand.full) return { status: 503, outcome: "overloaded" };
  if (!couldBeEndpoint(request.params.endpointId)) return { status: 404, outcome: "unknown-endpoint" };
  const encoding = request.headers["content-encoding"];
  // The signature covers the bytes as they came: nothing is decompressed.
  if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity") {
    return { status: 415, outcome: "unsupported" };
  }
  return undefined;
}

type Acknowledged = { status: Answer["status"] | 503; outcome: IngressOutcome };

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

function say(reply: FastifyReply, status: number): FastifyReply {
  if (status === 503) reply.header("retry-after", String(retryAfterSeconds));
  // Part of the body may still be on its way, and nobody reads it.
  if (status === 413 || status === 415) reply.header("connection", "close");
  return reply
    .code(status)
    .type("text/plain; charset=utf-8")
    .send(texts[status] ?? "refused");
}
