import {
  type InboxEvent,
  type InboxFilter,
  isOwnSend,
  type Ledger,
  type ReplayCandidate,
  type RequestStanding,
  readStanding,
  replayable,
  replayCandidates,
} from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import { effectOnRequest, meaningOf } from "./preview-replay.js";
import type { ReplayPreview } from "./schema-inbox.js";

export interface DryRunRow {
  event: InboxEvent;
  preview: ReplayPreview;
}

export interface DryRun {
  rows: DryRunRow[];
  /** There are more that match than the limit let through. */
  more: boolean;
}

export interface DryRunOptions {
  tenantId: string;
  /** Without ids: of what matches only what may be replayed. */
  filter: InboxFilter;
  limit: number;
  provider(name: string): SignatureProvider | undefined;
  /** Told after each page how many rows have been looked at. */
  onProgress?(looked: number): void;
}

/** Bodies at once in memory. */
const pageSize = 100;

/**
 * What a replay of everything that matches would do, the oldest first. Several events about one request are told in their
 * order, each against what those before it would have left. Reads only.
 */
export async function dryRunReplay(ledger: Ledger, options: DryRunOptions): Promise<DryRun> {
  const { tenantId, limit } = options;
  const filter = withReplayable(options.filter);
  const walk = new Walk(ledger, tenantId, options.provider);
  const rows: DryRunRow[] = [];
  let after: string | undefined;
  for (;;) {
    const size = Math.min(pageSize, limit + 1 - rows.length);
    const page = await replayCandidates(ledger, tenantId, filter, {
      limit: size,
      ...(after === undefined ? {} : { after }),
    });
    for (const candidate of page.slice(0, limit - rows.length)) rows.push(await walk.step(candidate));
    options.onProgress?.(rows.length);
    after = page.at(-1)?.inboxId;
    // The one beyond the limit was only read to know that it is there.
    if (page.length < size || after !== rows.at(-1)?.event.inboxId) {
      return { rows, more: page.length > 0 && after !== rows.at(-1)?.event.inboxId };
    }
  }
}

/** Of a whole inbox only what may be replayed is of interest; what somebody names is answered one by one. */
export function withReplayable(filter: InboxFilter): InboxFilter {
  if (filter.ids !== undefined) return filter;
  return { ...filter, status: replayable.filter((each) => filter.status?.includes(each) ?? true) };
}

/** The requests of a dry run as the events so far would have left them. */
class Walk {
  readonly #ledger: Ledger;
  readonly #tenantId: string;
  readonly #provider: DryRunOptions["provider"];
  readonly #standings = new Map<string, RequestStanding>();

  constructor(ledger: Ledger, tenantId: string, provider: DryRunOptions["provider"]) {
    this.#ledger = ledger;
    this.#tenantId = tenantId;
    this.#provider = provider;
  }

  async step({ body, ...event }: ReplayCandidate): Promise<DryRunRow> {
    const candidate = { ...event, body };
    const contract = this.#provider(event.provider)?.webhooks[event.scheme];
    const meaning = meaningOf(candidate, contract, this.#tenantId);
    if (meaning.kind === "decided") return { event, preview: meaning.preview };
    const key = JSON.stringify([event.connectionId, meaning.providerRef]);
    const standing = this.#standings.get(key) ?? (await this.#standingOf(candidate, meaning.providerRef));
    const { preview, after } = effectOnRequest(meaning, await this.#ours(candidate, meaning.operationId), standing);
    this.#standings.set(key, after);
    return { event, preview };
  }

  /** The operation that the event is evidence for: a SEND of this tenant on its connection. */
  async #ours(candidate: ReplayCandidate, operationId: string | undefined): Promise<string | null> {
    if (operationId === undefined) return null;
    const { connectionId } = candidate;
    const known =
      candidate.operationId === operationId
        ? candidate.namesOurs
        : // Nobody could read it when it was stored, so that the row names no operation.
          await isOwnSend(this.#ledger.sql, { tenantId: this.#tenantId, connectionId, operationId });
    return known ? operationId : null;
  }

  async #standingOf(candidate: ReplayCandidate, providerRef: string): Promise<RequestStanding> {
    const { connectionId, boundTo, signingStatus, seenFor } = candidate;
    if (candidate.providerRef === providerRef) return { operationId: boundTo, status: signingStatus, seenFor };
    return await readStanding(this.#ledger.sql, { tenantId: this.#tenantId, connectionId, providerRef });
  }
}
