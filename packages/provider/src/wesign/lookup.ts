import { classify } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type {
  LookupCall,
  LookupManyQuery,
  LookupManyResult,
  LookupQuery,
  LookupResult,
  Match,
  Observation,
} from "../port.js";
import { usableReference } from "../reference.js";
import { isJsonObject, type JsonObject } from "../strict-json.js";
import { bearer, permitted, tellRateLimit } from "../submit-request.js";
import { ownIds, weSignAnswers, weSignStatus } from "./answers.js";

const PAGE_LIMIT = 100;
/** A walk that is longer than this filters nothing. */
const MAX_PAGES = 50;

type MetadataQuery = Extract<LookupQuery, { by: "metadata" }>;
type Failure = { cause: string; retryAfterMs?: number };
type Page = { items: unknown[]; next: string | undefined };

/**
 * Reads; never changes anything. By metadata the list is followed to its last page, and every item is checked against
 * both of our ids here. `call.deadlineMs` covers the whole walk. Never rejects.
 */
export async function weSignLookup(
  transport: HttpTransport,
  query: LookupQuery,
  call: LookupCall,
): Promise<LookupResult> {
  const startedAt = performance.now();
  const read = (path: string) => get(transport, path, call, call.deadlineMs - (performance.now() - startedAt));
  const result = query.by === "reference" ? await byReference(query.ref, read) : await byMetadata(query, read);
  return { ...result, ms: Math.round(performance.now() - startedAt) };
}

/** Tagged: a record of the provider may have any member. */
type Answer = { record: JsonObject } | { observation: Observation };
type Read = (path: string) => Promise<Answer>;
type Untimed = LookupResult extends infer Result ? (Result extends unknown ? Omit<Result, "ms"> : never) : never;

async function byReference(ref: string, read: Read): Promise<Untimed> {
  if (usableReference(ref) === undefined) return failed({ cause: "unusable-reference" });
  const answer = await read(`/v1/signing-requests/${encodeURIComponent(ref)}`);
  if ("observation" in answer) {
    const { observation } = answer;
    if (observation.kind === "conflict" && observation.httpStatus === 404) return { kind: "not-found" };
    return failed(failureOf(observation));
  }
  const match = matchOf(answer.record);
  if ("cause" in match) return failed(match);
  if (match.ref !== ref) return failed({ cause: "answer-names-another-request" });
  return { kind: "found", matches: [match], pages: 1 };
}

async function byMetadata(query: MetadataQuery, read: Read): Promise<Untimed> {
  const matches = new Map<string, Match>();
  let others = 0;
  const filter = { "metadata[operation_id]": query.operationId };
  const walked = await walk(read, filter, query.createdAfter, (item) => {
    const match = ownMatch(item, query);
    if (match === "other") others += 1;
    else if ("cause" in match) return match;
    else matches.set(match.ref, match);
    return undefined;
  });
  if ("cause" in walked) return failed(walked);
  const noted = others === 0 ? {} : { otherItems: others };
  return { kind: "found", matches: [...matches.values()], pages: walked.pages, ...noted };
}

/**
 * Everything made since a moment, walked to its last page, shared out among the operations that were asked for. An item
 * that doesn't carry its metadata makes the whole walk prove nothing. Never rejects.
 */
export async function weSignLookupMany(
  transport: HttpTransport,
  query: LookupManyQuery,
  call: LookupCall,
): Promise<LookupManyResult> {
  const startedAt = performance.now();
  const read = (path: string) => get(transport, path, call, call.deadlineMs - (performance.now() - startedAt));
  const matches = new Map<string, Match[]>(query.operationIds.map((id) => [id, []]));
  let items = 0;
  const walked = await walk(read, {}, query.createdAfter, (item) => {
    items += 1;
    if (!isJsonObject(item)) return { cause: "unexpected-list-shape" };
    if (!("metadata" in item)) return { cause: "item-without-metadata" };
    const { operationId, tenantId } = ownIds(item);
    const mine = operationId === undefined || tenantId !== query.tenantId ? undefined : matches.get(operationId);
    if (mine === undefined) return undefined;
    const match = matchOf(item);
    if ("cause" in match) return match;
    if (!mine.some(({ ref }) => ref === match.ref)) mine.push(match);
    return undefined;
  });
  const ms = Math.round(performance.now() - startedAt);
  return "cause" in walked
    ? { kind: "failed", ...walked, ms }
    : { kind: "found", matches, pages: walked.pages, items, ms };
}

/** Follows a list to its last page; what `take` objects to ends the walk, since then it proves nothing. */
async function walk(
  read: Read,
  filter: Readonly<Record<string, string>>,
  createdAfter: Date | undefined,
  take: (item: unknown) => Failure | undefined,
): Promise<{ pages: number } | Failure> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 1; pages <= MAX_PAGES; pages += 1) {
    const answer = await read(listPath(filter, createdAfter, cursor));
    if ("observation" in answer) return failureOf(answer.observation);
    const page = pageOf(answer.record);
    if ("cause" in page) return page;
    for (const item of page.items) {
      const objection = take(item);
      if (objection !== undefined) return objection;
    }
    if (page.next === undefined) return { pages };
    if (seen.has(page.next)) return { cause: "repeated-cursor" };
    seen.add(page.next);
    cursor = page.next;
  }
  return { cause: "too-many-pages" };
}

function listPath(
  filter: Readonly<Record<string, string>>,
  createdAfter: Date | undefined,
  cursor: string | undefined,
): string {
  const search = new URLSearchParams(filter);
  if (createdAfter !== undefined) search.set("created_after", createdAfter.toISOString());
  search.set("limit", String(PAGE_LIMIT));
  if (cursor !== undefined) search.set("cursor", cursor);
  return `/v1/signing-requests?${search}`;
}

function pageOf(body: JsonObject): Page | Failure {
  const { data, has_more: more, next_cursor: next } = body;
  if (!Array.isArray(data) || typeof more !== "boolean") return { cause: "unexpected-list-shape" };
  if (!more) return { items: data, next: undefined };
  return typeof next === "string" && next !== "" ? { items: data, next } : { cause: "no-next-cursor" };
}

/** Our item, somebody else's, or one that cannot be told: then the walk proves nothing. */
function ownMatch(item: unknown, query: MetadataQuery): Match | "other" | Failure {
  if (!isJsonObject(item)) return { cause: "unexpected-list-shape" };
  // A list that leaves metadata out would make every request of ours look absent.
  if (!("metadata" in item)) return { cause: "item-without-metadata" };
  const { operationId, tenantId } = ownIds(item);
  return operationId === query.operationId && tenantId === query.tenantId ? matchOf(item) : "other";
}

function matchOf(record: JsonObject): Match | Failure {
  const ref = usableReference(record.id);
  if (ref === undefined) return { cause: "no-usable-reference" };
  const status = weSignStatus(record.status);
  return status === undefined ? { cause: "unknown-status" } : { ref, status, ...ownIds(record) };
}

async function get(transport: HttpTransport, path: string, call: LookupCall, deadlineMs: number): Promise<Answer> {
  if (deadlineMs <= 0) return { observation: { kind: "not-sent", cause: "deadline" } };
  if (!(await permitted(call))) return { observation: { kind: "not-sent", cause: "no-permit" } };
  const outcome = await transport.send({
    method: "GET",
    baseUrl: call.baseUrl,
    path,
    headers: { accept: "application/json", ...bearer(call.credential) },
    deadlineMs,
    mayWrite: () => true,
    ...(call.signal === undefined ? {} : { signal: call.signal }),
    maxResponseBytes: 4 * 1024 * 1024,
  });
  tellRateLimit(outcome, call);
  let record: JsonObject | undefined;
  const observation = classify(outcome, weSignAnswers.FINALIZE, (httpStatus, body) => {
    if (httpStatus === 200) record = body;
    return undefined;
  });
  return record === undefined ? { observation } : { record };
}

function failureOf(observation: Observation): Failure {
  const cause =
    "cause" in observation ? observation.cause : "code" in observation ? observation.code : observation.kind;
  const wait = "retryAfterMs" in observation ? observation.retryAfterMs : undefined;
  return wait === undefined ? { cause } : { cause, retryAfterMs: wait };
}

function failed(failure: Failure): Untimed {
  return { kind: "failed", ...failure };
}
