import type { FastifyReply, FastifyRequest } from "fastify";
import type { Answer } from "./answer.js";
import type { RateLimitHeaders } from "./rate-limit.js";

/** Sends a finished answer: exactly its bytes. */
export function sendAnswer(answer: Answer, reply: FastifyReply): FastifyReply {
  return reply.code(answer.status).type("application/json").send(answer.body);
}

/** Ends the connection without any byte of an answer. */
export function destroySocket(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!reply.sent) reply.hijack();
  request.raw.socket.destroy();
  return reply;
}

/** Never answers; the connection stays open until the client, or the simulator, ends it. */
export function hang(reply: FastifyReply): FastifyReply {
  return reply.hijack();
}

/** Puts the RateLimit-* headers on an answer, whatever answer it becomes. */
export function setRateLimitHeaders(reply: FastifyReply): (headers: RateLimitHeaders) => void {
  return (headers) => {
    reply.headers({ ...headers });
  };
}

type Spoiled = "truncated-2xx" | "truncated-chunked" | "unparsable-2xx" | "empty-2xx";

/** Sends a 2xx that does not carry its answer. */
export function sendSpoiled(kind: Spoiled, answer: Answer, reply: FastifyReply): FastifyReply {
  if (kind === "empty-2xx") return reply.code(answer.status).type("application/json").send("{}");
  if (kind === "unparsable-2xx") {
    return reply.code(answer.status).type("text/html").send("<!doctype html><title>OK</title><p>Please wait.</p>");
  }
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  reply.hijack();
  const bytes = Buffer.from(answer.body);
  const half = bytes.subarray(0, Math.floor(bytes.length / 2));
  reply.raw.setHeader("content-type", "application/json");
  // Without a length node frames the body in chunks.
  if (kind === "truncated-2xx") reply.raw.setHeader("content-length", bytes.length);
  reply.raw.writeHead(answer.status);
  // The half must have left before the connection is cut, or this would be a lost response.
  reply.raw.write(half, () => reply.raw.socket?.end(() => reply.raw.socket?.destroy()));
  return reply;
}
