import {
  type Delivery,
  type DueJob,
  type Endpoint,
  type Ledger,
  openEndpoint,
  type Recorded,
  recordDeliveries,
  sqlState,
} from "@countersign/ledger";
import {
  type SignatureProvider,
  splitEvents,
  TooManyEventsError,
  type VerifyResult,
  type WebhookContract,
} from "@countersign/provider";
import { type Logger, recordSpan, withinTrace } from "@countersign/runtime";
import { EndpointCache } from "./endpoint-cache.js";
import type { EndpointWatch } from "./endpoint-watch.js";
import { GroupCommit } from "./group-commit.js";
import type { IngressMetrics, IngressOutcome } from "./ingress-metrics.js";
import { type EventBytes, type Headers, readDelivery } from "./read-delivery.js";
import { RefusalLog } from "./refusal-log.js";
import { encodingOf, UnpackError, unpackGzip } from "./unpack.js";

export interface ReceiveParts {
  readonly ledger: Ledger;
  providerByName(name: string): SignatureProvider | undefined;
  /** Hands the applier's jobs over after the commit; best effort. */
  handOff(jobs: readonly DueJob[]): Promise<{ failed: number }>;
  readonly logger: Logger;
  readonly metrics: IngressMetrics;
  readonly endpointCacheMs: number;
  /** Bytes of an unpacked body, at most. */
  readonly bodyLimit: number;
  readonly watch?: EndpointWatch;
  /** Commits that run side by side; what arrives meanwhile shares the next one. */
  readonly parallelCommits?: number;
  /** Unix time in ms, for the freshness window only. */
  now?(): number;
}

/** What is answered to a delivery; the text says nothing that a stranger could use. */
export interface Answer {
  readonly status: 200 | 400 | 401 | 404 | 413 | 415;
  readonly outcome: IngressOutcome;
  /** What this sender insists on reading in the 2xx. */
  readonly acknowledgement?: { readonly text: string; readonly contentType: string };
}

/** The endpoint's connection names an adapter or scheme that this process doesn't have. */
export class SchemeUnknownError extends Error {
  override readonly name = "SchemeUnknownError";
  readonly code = "scheme-unknown";
  readonly safeMessage = "this process knows no verifier for the endpoint's provider and scheme";
}

// The shape of the ids that the ledger makes: a guess of another shape costs no read.
const endpointIdShape = /^we_[A-Za-z0-9_-]{32}$/;

/** Whether a path could name an endpoint at all. */
export const couldBeEndpoint = (endpointId: string): boolean => endpointIdShape.test(endpointId);

/** A secret that was added a moment ago must count: after a refusal, what was read longer ago than this is read again. */
const refusedMaxAgeMs = 1_000;

/** Bytes of bodies in one commit, and what a row counts besides its body. */
const bytesPerCommit = 4 * 1024 * 1024;
const bytesPerRow = 16 * 1024;

/**
 * Takes one delivery: verify the bytes as they came, then parse, then store in one statement. Resolves only after the
 * commit (a 2xx is a promise); whatever rejects here is answered 503, so that the sender tries again.
 */
export function createReceiver(parts: ReceiveParts): (id: string, body: Buffer, headers: Headers) => Promise<Answer> {
  const { ledger } = parts;
  const refusals = new RefusalLog(parts.logger);
  const endpoints = new EndpointCache((id) => openEndpoint(ledger, id), { ttlMs: parts.endpointCacheMs });
  const commits = new GroupCommit<readonly Delivery[], Recorded[]>({
    store: async (batches) => regroup(batches, await recordDeliveries(ledger, batches.flat())),
    // Class 22 and 23 speak of the data; anything else would fail each of them, too.
    perhapsOneItem: (error) => /^2[23]/.test(sqlState(error) ?? ""),
    parallel: parts.parallelCommits ?? 4,
    weigh: (rows) => rows.reduce((sum, row) => sum + row.body.length + bytesPerRow, 0),
    most: bytesPerCommit,
  });
  return async (endpointId, body, headers) => {
    const known = await endpoints.get(endpointId);
    if (known === undefined) return { status: 404, outcome: "unknown-endpoint" };
    const first = await verified(parts, known, body, headers);
    if (!("refused" in first)) return await store(parts, commits, known, first);
    // Under the flood of a stranger this costs one read a second.
    const fresh = first.refused === "no-matching-signature" ? await endpoints.get(endpointId, refusedMaxAgeMs) : known;
    if (fresh === undefined) return { status: 404, outcome: "unknown-endpoint" };
    const second = fresh === known ? first : await verified(parts, fresh, body, headers);
    return "refused" in second ? refuse(parts, refusals, fresh, second) : await store(parts, commits, fresh, second);
  };
}

interface Verified {
  readonly contract: WebhookContract;
  readonly secretId: string;
  readonly content: Uint8Array;
  readonly headers: Headers;
}

interface Refused {
  readonly status: 400 | 401 | 413 | 415;
  readonly outcome: IngressOutcome;
  readonly refused: Exclude<VerifyResult, { ok: true }>["reason"] | "encoding";
}

/** The content of a delivery that its endpoint's scheme, one of its secrets and the clock vouch for. */
async function verified(
  parts: ReceiveParts,
  endpoint: Endpoint,
  body: Buffer,
  headers: Headers,
): Promise<Verified | Refused> {
  const contract = parts.providerByName(endpoint.provider)?.webhooks[endpoint.scheme];
  if (contract === undefined) throw new SchemeUnknownError();
  const now = (parts.now ?? Date.now)();
  const packed = encodingOf(headers["content-encoding"]) === "gzip";
  if (packed && endpoint.gzip === null) return { status: 415, outcome: "unsupported", refused: "encoding" };
  try {
    // Where the packed bytes are what was signed, nothing is unpacked for a stranger.
    const content = packed && endpoint.gzip === "content" ? await unpackGzip(body, parts.bodyLimit) : body;
    const result = contract.verify(content, headers, endpoint.secrets, now);
    if (!result.ok) return { status: 401, outcome: "unauthorized", refused: result.reason };
    const inside = packed && endpoint.gzip === "wire" ? await unpackGzip(body, parts.bodyLimit) : content;
    return { contract, secretId: result.secretId, content: inside, headers };
  } catch (error) {
    if (!(error instanceof UnpackError)) throw error;
    const outcome = error.statusCode === 413 ? "too-large" : "bad-request";
    return { status: error.statusCode, outcome, refused: "encoding" };
  }
}

function refuse({ metrics, watch }: ReceiveParts, refusals: RefusalLog, endpoint: Endpoint, refused: Refused): Answer {
  const { status, outcome, refused: reason } = refused;
  metrics.refused.inc({ reason });
  watch?.refused(endpoint, reason);
  refusals.refused(endpoint, reason);
  return { status, outcome };
}

async function store(
  parts: ReceiveParts,
  commits: GroupCommit<readonly Delivery[], Recorded[]>,
  endpoint: Endpoint,
  delivery: Verified,
): Promise<Answer> {
  const { contract, secretId, content, headers } = delivery;
  const events = eventsOf(content);
  if (events === "too-many") return { status: 413, outcome: "too-large" };
  const rows = events.map((event) => readDelivery(endpoint, contract, event, headers, secretId));
  for (const row of rows) if (row.flagged === true) parts.metrics.headerIdDiffers.inc();
  const startedAt = Date.now();
  const recorded = await commits.add(rows).catch((error: unknown) => {
    parts.watch?.failed(endpoint);
    throw error;
  });
  parts.watch?.stored(endpoint);
  for (const each of recorded) {
    parts.metrics.events.inc({ outcome: storedAs(each) });
    traceStored(endpoint, each, startedAt);
  }
  const inboxIds = recorded.flatMap((each) => (each.kind === "stored" && !each.quarantined ? [each.inboxId] : []));
  if (inboxIds.length > 0) handOff(parts, endpoint, inboxIds);
  const { acknowledgement } = contract.scheme;
  return { status: 200, outcome: worst(recorded), ...(acknowledgement === undefined ? {} : { acknowledgement }) };
}

/** Only what is verified and new makes a trace, so that no stranger and no repeating sender fills the store of traces. */
function traceStored(
  { tenantId: tenant, connectionId: connection }: Endpoint,
  recorded: Recorded,
  startedAt: number,
): void {
  if (recorded.kind !== "stored") return;
  const { inboxId } = recorded;
  const facts = { tenant, connection, event: inboxId, outcome: storedAs(recorded) };
  recordSpan({ name: "webhook.receive", of: inboxId, first: true, startedAt, facts });
}

/** An array is a delivery of several events, each on its own; anything else is one. */
function eventsOf(content: Uint8Array): readonly EventBytes[] | "too-many" {
  try {
    const several = splitEvents(content);
    return several === undefined ? [{ body: content }] : several.map((body, index) => ({ body, index }));
  } catch (error) {
    if (error instanceof TooManyEventsError) return "too-many";
    throw error;
  }
}

function regroup(batches: readonly (readonly Delivery[])[], recorded: readonly Recorded[]): Recorded[][] {
  let from = 0;
  return batches.map((batch) => {
    from += batch.length;
    return recorded.slice(from - batch.length, from);
  });
}

type StoredAs = "stored" | "quarantined" | "duplicate" | "conflicting";

function storedAs(recorded: Recorded): StoredAs {
  if (recorded.kind === "duplicate") return "duplicate";
  if (recorded.quarantined) return "quarantined";
  return recorded.conflicting ? "conflicting" : "stored";
}

const byImportance: readonly StoredAs[] = ["conflicting", "quarantined", "stored", "duplicate"];

/** One word for a delivery of several events: the one that most wants looking at. An empty array holds nothing. */
function worst(recorded: readonly Recorded[]): IngressOutcome {
  const words = new Set(recorded.map(storedAs));
  return byImportance.find((word) => words.has(word)) ?? "empty";
}

/** Not awaited: the rows are due, so the due loop finds whatever a dead Redis loses here. */
function handOff(
  { handOff: give, metrics, logger }: ReceiveParts,
  { tenantId }: Endpoint,
  inboxIds: readonly string[],
): void {
  const jobs = inboxIds.map(
    (subjectId): DueJob => ({ queue: "webhook-apply", tenantId, kind: "inbox", subjectId, eventNo: 0, dispatches: 0 }),
  );
  withinTrace(inboxIds[0] ?? "", () => give(jobs)).then(
    ({ failed }) => metrics.handOff.inc({ outcome: failed === 0 ? "added" : "failed" }),
    (error: unknown) => {
      metrics.handOff.inc({ outcome: "failed" });
      logger.warn({ err: error, tenant: tenantId }, "hand-off failed: the due loop will find the event");
    },
  );
}
