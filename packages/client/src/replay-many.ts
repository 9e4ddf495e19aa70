import { type InboxFilter, type Ledger, listInbox, replayInbox } from "@countersign/ledger";
import { withReplayable } from "./dry-run-replay.js";
import { whyNotReplayed } from "./preview-replay.js";
import type { BulkReplayRow } from "./schema-inbox.js";

export interface Replayed {
  /** The oldest first; what was named and not made due again stands there too, with the reason. */
  rows: BulkReplayRow[];
  /** The limit left some out: ask again once these are applied. */
  more: boolean;
  /** Those that were made due again. */
  replayed: string[];
}

/**
 * Makes events due again, at most `limit`; pressing twice changes nothing more. Their jobs are the caller's to hand over,
 * or the due loop's to find. Throws `reason-missing`.
 */
export async function replayMany(
  ledger: Ledger,
  tenantId: string,
  filter: InboxFilter,
  options: { who: string; limit: number },
): Promise<Replayed> {
  const replayed = await replayInbox(ledger, tenantId, filter, options);
  const rows = replayed.map((inboxId): BulkReplayRow => ({ inboxId, outcome: "replayed", ...noDetail }));
  const cut = replayed.length === options.limit;
  if (filter.ids === undefined) return { rows, replayed, more: cut && (await someLeft(ledger, tenantId, filter)) };
  const done = new Set(replayed);
  const others = await notReplayed(
    ledger,
    tenantId,
    filter,
    [...new Set(filter.ids.map((id) => id.toLowerCase()))].filter((id) => !done.has(id)),
  );
  const isLeft = ({ reason }: BulkReplayRow): boolean => reason === "busy";
  return {
    rows: [...rows, ...others.filter((row) => !(cut && isLeft(row)))],
    replayed,
    more: cut && others.some(isLeft),
  };
}

const noDetail = { reason: null, status: null, evidenceFor: null };

/** Why events that somebody named were not made due again; those of another tenant, or that don't match, are left out. */
async function notReplayed(
  ledger: Ledger,
  tenantId: string,
  filter: InboxFilter,
  ids: readonly string[],
): Promise<BulkReplayRow[]> {
  if (ids.length === 0) return [];
  const events = await listInbox(ledger, tenantId, { ...filter, ids }, { limit: ids.length });
  return events.reverse().map((event) => ({
    inboxId: event.inboxId,
    outcome: "not-replayed",
    ...noDetail,
    reason: whyNotReplayed(event) ?? "busy",
  }));
}

async function someLeft(ledger: Ledger, tenantId: string, filter: InboxFilter): Promise<boolean> {
  return (await listInbox(ledger, tenantId, withReplayable(filter), { limit: 1 })).length > 0;
}

/** Rows by outcome. */
export function countOutcomes(rows: readonly BulkReplayRow[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of rows) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
