import type { State } from "./state.js";

/**
 * What the end of an operation does to those that wait for it (DESIGN §3 "Relations"), as data. The database function
 * `cs_release_effect` is made from this table and runs in the transaction of the end itself.
 */
export type Relation = "target" | "void-first" | "send-first";
export type ReleaseEffect = "release" | "retire" | "wait";

export interface ReleaseRule {
  relation: Relation;
  /** What the waiter is; `*` for any. */
  waiter: "VOID" | "SEND" | "RESEND" | "FINALIZE" | "*";
  endedAs: Extract<State, "CONFIRMED" | "TERMINAL_FAILED" | "SUPERSEDED">;
  /** Only where the end carries this reason; `*` for any. */
  endedBecause: string;
  effect: ReleaseEffect;
  /** Reason code in the waiter's history. */
  because: string;
}

/** First match wins. */
export const releaseRules: readonly ReleaseRule[] = [
  {
    relation: "target",
    waiter: "*",
    endedAs: "CONFIRMED",
    endedBecause: "*",
    effect: "release",
    because: "target-confirmed",
  },
  {
    relation: "target",
    waiter: "*",
    endedAs: "TERMINAL_FAILED",
    endedBecause: "*",
    effect: "retire",
    because: "target-never-existed",
  },
  // Abandoned with references: the review plans one VOID per reference itself, so this waiter is not one of them.
  {
    relation: "target",
    waiter: "*",
    endedAs: "SUPERSEDED",
    endedBecause: "*",
    effect: "retire",
    because: "target-never-existed",
  },
  {
    relation: "void-first",
    waiter: "*",
    endedAs: "CONFIRMED",
    endedBecause: "*",
    effect: "release",
    because: "void-confirmed",
  },
  {
    relation: "void-first",
    waiter: "*",
    endedAs: "SUPERSEDED",
    endedBecause: "target-never-existed",
    effect: "release",
    because: "target-never-existed",
  },
  {
    relation: "void-first",
    waiter: "*",
    endedAs: "SUPERSEDED",
    endedBecause: "reviewed",
    effect: "release",
    because: "void-reviewed",
  },
  // A merely retired VOID releases nobody.
  {
    relation: "void-first",
    waiter: "*",
    endedAs: "SUPERSEDED",
    endedBecause: "*",
    effect: "wait",
    because: "void-retired",
  },
  {
    relation: "send-first",
    waiter: "*",
    endedAs: "CONFIRMED",
    endedBecause: "*",
    effect: "release",
    because: "successor-confirmed",
  },
  {
    relation: "send-first",
    waiter: "*",
    endedAs: "TERMINAL_FAILED",
    endedBecause: "*",
    effect: "retire",
    because: "successor-failed",
  },
  {
    relation: "send-first",
    waiter: "*",
    endedAs: "SUPERSEDED",
    endedBecause: "*",
    effect: "retire",
    because: "successor-ended",
  },
];
