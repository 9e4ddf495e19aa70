import type { OpenDecision } from "@countersign/client";

/** Whole words for what the ledger says in codes. Pure. */

export function age(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** `2026-11-30T21:00:00.123456Z` → `2026-11-30 21:00:00 UTC`. */
export const moment = (iso: string | null): string =>
  iso === null ? "–" : `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

export const spoken = (code: string): string => code.replaceAll("-", " ").replaceAll("_", " ");

export const wentOut = {
  yes: "Yes, it went out.",
  no: "No, it did not go out.",
  unknown: "Nobody knows yet.",
} as const;

/** What a decision would do, before the click. */
export function consequences(decision: Pick<OpenDecision, "decision" | "reference" | "voids" | "leftAlone">): string[] {
  const { reference, voids, leftAlone } = decision;
  const kept =
    decision.decision === "abandon"
      ? "The operation ends as given up; a request of it may still exist where nobody can look."
      : reference === null
        ? "The operation counts as done."
        : `${reference} is kept: the operation is confirmed with it.`;
  const lines = [kept];
  if (voids.length > 0) {
    lines.push(`${voids.length === 1 ? "1 VOID" : `${voids.length} VOIDs`} will be planned, for ${voids.join(", ")}.`);
  } else lines.push("No VOID will be planned.");
  if (leftAlone.length > 0) lines.push(`${leftAlone.join(", ")}: over already, left alone.`);
  return lines;
}

/** What becomes of those that wait for an operation that is given up. */
export const dependantsWords = {
  release: "let them go ahead although it did not happen",
  retire: "end them too: they are never sent",
  retry: "plan it again: they wait for the new one",
} as const;

export interface TimelineEntry {
  at: string;
  what: string;
  detail: string;
}

interface Line {
  at: string;
  kind: string;
  from: string | null;
  to: string | null;
  reason: string;
  actor: string;
  attempt: number;
}
interface Event {
  receivedAt: string;
  type: string | null;
  reference: string | null;
  status: string;
  reason: string | null;
}
interface Miss {
  at: string;
  kind: string;
  attempt: number;
}

const reached: Record<string, string> = {
  PLANNED: "written down, to be sent: ",
  IN_FLIGHT: "the provider is called: ",
  UNKNOWN: "it may have gone out: ",
  RECONCILING: "the provider is asked: ",
  NEEDS_REVIEW: "a person decides: ",
  CONFIRMED: "it is done: ",
  TERMINAL_FAILED: "refused for good: ",
  SUPERSEDED: "no longer wanted: ",
};

/** History, webhook events and guards that worked, in one order. */
export function timeline(history: readonly Line[], events: readonly Event[], misses: readonly Miss[]): TimelineEntry[] {
  const entries = [
    ...history.map((line) => ({
      at: line.at,
      what: line.to === null || line.to === line.from ? spoken(line.kind) : `${line.from ?? "new"} → ${line.to}`,
      detail: `${line.to === null || line.to === line.from ? "" : (reached[line.to] ?? "")}${spoken(line.reason)}, by ${line.actor}${line.attempt > 0 ? `, attempt ${line.attempt}` : ""}`,
    })),
    ...events.map((event) => ({
      at: event.receivedAt,
      what: `webhook ${event.type ?? "of an unknown type"}`,
      detail: `${event.reference ?? "no reference"}: ${event.status}${event.reason === null ? "" : `, ${spoken(event.reason)}`}`,
    })),
    ...misses.map((miss) => ({
      at: miss.at,
      what: "a guard worked",
      detail: `${spoken(miss.kind)}, attempt ${miss.attempt}`,
    })),
  ];
  const order = new Map(entries.map((entry) => [entry, sortable(entry.at)]));
  return entries.sort((a, b) => (order.get(a) ?? "").localeCompare(order.get(b) ?? ""));
}

/** To the microsecond, whatever number of digits it came with: `…:01Z` is before `…:01.5Z`. */
const sortable = (iso: string): string => `${iso.slice(0, 19)}.${(/\.(\d+)/.exec(iso)?.[1] ?? "").padEnd(6, "0")}`;

const outcomes: Record<string, string> = {
  applied: "would be applied",
  nothing: "would change nothing",
  conflict: "would be a conflict again: a person decides",
  "asks-provider": "is only a hint: the provider would be asked",
  waits: "would wait: its reference is bound to nothing",
  quarantined: "would be quarantined again: nobody can interpret it",
  fails: "would fail: its adapter is missing in this build",
  replayed: "made due again",
};

/** What a replay would do, or did. */
export const replayWords = (outcome: string): string => outcomes[outcome] ?? spoken(outcome);
