import type { OpenDecision } from "@countersign/client";
/** Whole words for what the ledger says in codes. Pure. */
export declare function age(seconds: number): string;
/** `2026-11-30T21:00:00.123456Z` → `2026-11-30 21:00:00 UTC`. */
export declare const moment: (iso: string | null) => string;
export declare const spoken: (code: string) => string;
export declare const wentOut: {
  readonly yes: "Yes, it went out.";
  readonly no: "No, it did not go out.";
  readonly unknown: "Nobody knows yet.";
};
/** What a decision would do, before the click. */
export declare function consequences(
  decision: Pick<OpenDecision, "decision" | "reference" | "voids" | "leftAlone">,
): string[];
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
/** History, webhook events and guards that worked, in one order. */
export declare function timeline(
  history: readonly Line[],
  events: readonly Event[],
  misses: readonly Miss[],
): TimelineEntry[];
/** What a replay would do, or did. */
export declare const replayWords: (outcome: string) => string;
