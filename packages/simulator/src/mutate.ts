import type { FastifyReply, FastifyRequest } from "fastify";
import { type Answer, ProviderError, rateLimited } from "./answer.js";
import type { Endpoint, MutationFault } from "./fault-kinds.js";
import type { Fault, Subject } from "./fault-plan.js";
import { checkKey, type KeySlot } from "./idempotency.js";
import type { Parts } from "./parts.js";
import { destroySocket, hang, sendAnswer, sendSpoiled, setRateLimitHeaders } from "./wire.js";

/** A call that may change something, its body read. */
export interface MutationCall {
  readonly endpoint: Endpoint;
  readonly workspace: string;
  readonly subject: Subject;
  /** The hash of the request where this endpoint reads the Idempotency-Key header. */
  readonly hash?: string;
  /** Commits at once; throws a ProviderError when the request is refused. */
  readonly execute: () => Answer;
}

/** What became of the commit: an answer to send, or nothing to send ever. */
type Outcome = { readonly answer: Answer; readonly replayed: boolean } | "reset" | "hang";

/**
 * Runs a call in the provider's order: arrival counted, rate limit, key, commit, key finished, answer. The fault of
 * this call, if it gets one, strikes at its place in that order.
 */
export async function mutate(parts: Parts, call: MutationCall, request: FastifyRequest, reply: FastifyReply) {
  const attempt = parts.audit.arrive(call.endpoint, call.workspace, call.subject);
  parts.limiter.take(call.workspace, setRateLimitHeaders(reply));
  const fault = parts.faults.forMutation(call.endpoint, call.subject, attempt);
  if (fault?.kind === "reset-before-any-byte") return destroySocket(request, reply);
  if (fault?.kind === "429-burst") {
    parts.limiter.block(call.workspace, fault.retryAfterSeconds * 1_000);
    throw rateLimited(fault.retryAfterSeconds);
  }
  const outcome = await commit(parts, call, request, reply, fault);
  if (outcome === "reset") return destroySocket(request, reply);
  if (outcome === "hang") return hang(reply);
  if (fault?.kind === "5xx-after-commit") throw serverError(fault);
  if (outcome.replayed) reply.header("idempotent-replayed", "true");
  switch (fault?.kind) {
    case "lost-response":
    case "crash-after-commit":
      return destroySocket(request, reply);
    case "hang-after-commit":
      return hang(reply);
    case "truncated-2xx":
    case "truncated-chunked":
    case "unparsable-2xx":
    case "empty-2xx":
      return sendSpoiled(fault.kind, outcome.answer, reply);
    default:
      return sendAnswer(outcome.answer, reply);
  }
}

async function commit(
  parts: Parts,
  call: MutationCall,
  request: FastifyRequest,
  reply: FastifyReply,
  fault: Fault<MutationFault> | undefined,
): Promise<Outcome> {
  const begun = begin(parts, call, request);
  if (begun.kind === "replay") {
    await parts.background.sleep(parts.config.latencyMs);
    if (fault?.answer !== undefined) throw scriptedError(fault.answer);
    if (fault?.kind === "hang") return "hang";
    if (fault?.kind === "reset-before-commit" || fault?.kind === "crash-before-commit") return "reset";
    return { answer: begun.answer, replayed: true };
  }
  const { slot } = begun;
  await parts.background.sleep(parts.config.latencyMs);
  if (fault?.answer !== undefined) {
    slot?.release();
    throw scriptedError(fault.answer);
  }
  switch (fault?.kind) {
    case "5xx-before-commit":
      slot?.release();
      throw serverError(fault);
    case "reset-before-commit":
      slot?.release();
      return "reset";
    case "crash-before-commit":
      return "reset";
    case "hang":
      return "hang";
    case "slow-commit":
      await parts.background.track(
        clientGone(parts, request, fault).then(() => parts.background.sleep(fault.slowCommitMs)),
      );
      break;
    case "late-commit":
      destroySocket(request, reply);
      await parts.background.sleep(fault.slowCommitMs);
      break;
    default:
  }
  const answer = executeAndFinish(call, slot, fault);
  return fault?.kind === "late-commit" ? "reset" : { answer, replayed: false };
}

function begin(
  parts: Parts,
  call: MutationCall,
  request: FastifyRequest,
): { kind: "run"; slot?: KeySlot } | { kind: "replay"; answer: Answer } {
  const header = request.headers["idempotency-key"];
  // Read only where it applies; anywhere else it is ignored, not rejected.
  if (call.hash === undefined || header === undefined || parts.config.mode === "poor") return { kind: "run" };
  return parts.keys.begin(call.workspace, checkKey(String(header)), call.hash);
}

function executeAndFinish(
  call: MutationCall,
  slot: KeySlot | undefined,
  fault: Fault<MutationFault> | undefined,
): Answer {
  try {
    const answer = call.execute();
    if (fault?.kind === "duplicate-request") call.execute();
    if (fault?.kind === "5xx-after-commit") slot?.release();
    else if (fault?.kind !== "crash-after-commit") slot?.succeed(answer);
    return answer;
  } catch (error) {
    slot?.release();
    throw error;
  }
}

/** Resolves when the client's socket is closed, or after the longest hold. */
function clientGone(parts: Parts, request: FastifyRequest, fault: Fault): Promise<void> {
  const { socket } = request.raw;
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = parts.background.after(fault.slowCommitHoldMs, resolve);
    socket.once("close", () => {
      cancel();
      resolve();
    });
  });
}

function scriptedError({ status, code, retryAfterSeconds }: NonNullable<Fault["answer"]>): ProviderError {
  const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return new ProviderError(status, code, "This answer was scripted.", headers);
}

function serverError(fault: Fault): ProviderError {
  return new ProviderError(fault.errorStatus, "internal_error", "Something went wrong on our side.");
}
