import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answer, notFound, ProviderError } from "../answer.js";
import type { LookupFault } from "../fault-kinds.js";
import type { Fault, Subject } from "../fault-plan.js";
import type { Parts } from "../parts.js";
import { sealedDocument } from "../sealed-document.js";
import { requestView, subjectOf } from "../signing-request.js";
import { hang, sendAnswer, setRateLimitHeaders } from "../wire.js";
import type { ListQuery } from "../world.js";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

function badQuery(name: string): ProviderError {
  return new ProviderError(400, `invalid_${name}`, `The query parameter ${name} is not valid.`);
}

function integer(text: string | undefined, name: string, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw badQuery(name);
  return value;
}

function cursorText(seq: number): string {
  return Buffer.from(`seq:${seq}`).toString("base64url");
}

function cursorSeq(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^seq:(\d{1,15})$/.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (match?.[1] === undefined) throw badQuery("cursor");
  return Number(match[1]);
}

function listQuery(search: URLSearchParams): ListQuery {
  const one = (name: string) => search.get(name) ?? undefined;
  const metadata = new Map<string, string>();
  for (const [name, value] of search) {
    const match = /^metadata\[(.+)\]$/.exec(name);
    if (match?.[1] !== undefined) metadata.set(match[1], value);
  }
  const after = one("created_after");
  const createdAfter = after === undefined ? undefined : Date.parse(after);
  if (Number.isNaN(createdAfter)) throw badQuery("created_after");
  const limit = integer(one("limit"), "limit", 1, MAX_LIMIT) ?? DEFAULT_LIMIT;
  return { metadata, createdAfter, before: cursorSeq(one("cursor")), limit, lagMs: 0 };
}

/** Applies the faults that end a read; false when it may go on. */
function strike(fault: Fault<LookupFault> | undefined, reply: FastifyReply): boolean {
  if (fault?.kind === "lookup-fail") {
    throw new ProviderError(503, "unavailable", "The service is not available for the moment.");
  }
  if (fault?.kind !== "lookup-hang") return false;
  hang(reply);
  return true;
}

async function listRequests(parts: Parts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
  const asked = listQuery(new URL(request.url, "http://localhost").searchParams);
  const { metadata } = asked;
  const subject = { tenant: metadata.get("tenant"), operationId: metadata.get("operation_id"), sandbox: false };
  const fault = parts.faults.forLookup("list", subject);
  await parts.background.sleep(parts.config.latencyMs);
  if (parts.config.mode === "poor") throw notFound();
  if (strike(fault, reply)) return reply;
  if (fault?.kind === "lookup-empty") {
    return sendAnswer(answer(200, { data: [], has_more: false, next_cursor: null }), reply);
  }
  const { page, hasMore } = parts.world.list(request.workspace, {
    ...asked,
    metadata: parts.config.mode === "list-ignores-filter" ? new Map() : metadata,
    lagMs: Math.max(parts.config.lookupLagMs, fault?.kind === "lookup-lag" ? fault.lookupLagMs : 0),
  });
  const last = page.at(-1);
  const next_cursor = hasMore && last !== undefined ? cursorText(last.seq) : null;
  return sendAnswer(answer(200, { data: page.map(requestView), has_more: hasMore, next_cursor }), reply);
}

/** Whom a read by id is about: the id as asked for, and the metadata of the request where there is one. */
function subjectById(parts: Parts, request: FastifyRequest<{ Params: { id: string } }>): Subject {
  const { id } = request.params;
  return { ...(parts.world.find(request.workspace, id)?.subject ?? subjectOf(undefined)), reference: id };
}

/** Everything that only reads. */
export function readRoutes(app: FastifyInstance, parts: Parts): void {
  app.get("/v1/signing-requests", (request, reply) => listRequests(parts, request, reply));

  app.get<{ Params: { id: string } }>("/v1/signing-requests/:id", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    const fault = parts.faults.forLookup("get", subjectById(parts, request));
    await parts.background.sleep(parts.config.latencyMs);
    if (strike(fault, reply)) return reply;
    return sendAnswer(answer(200, requestView(parts.world.get(request.workspace, request.params.id))), reply);
  });

  app.get<{ Params: { id: string } }>("/v1/signing-requests/:id/document", async (request, reply) => {
    parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
    const fault = parts.faults.forLookup("document", subjectById(parts, request));
    await parts.background.sleep(parts.config.latencyMs);
    if (strike(fault, reply)) return reply;
    const sealed = sealedDocument(parts.world.get(request.workspace, request.params.id));
    return reply.code(200).type("application/pdf").send(sealed);
  });
}
