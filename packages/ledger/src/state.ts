/**
 * The states of an operation (seeds/000 "The operation state machine", DESIGN §3). Each says what it means, who moves it
 * on, and what a crash in it leaves behind.
 */
export const states = [
  /** Approved and recorded; no request of it is live. A submit worker claims it once it is released. A crash leaves it due. */
  "PLANNED",
  /** One worker holds the lease and is calling the provider. A crash leaves the lease to expire: UNKNOWN, never PLANNED. */
  "IN_FLIGHT",
  /** Completion could not be confirmed: neither success nor failure. A reconciler claims it. A crash leaves it due. */
  "UNKNOWN",
  /** One worker asks the provider what exists. It only reads, so a crash leaves nothing but an expired lease: UNKNOWN. */
  "RECONCILING",
  /** Evidence conflicts, or nothing can be proven. Only a named person or policy moves it on. */
  "NEEDS_REVIEW",
  /** The request is real and its reference is stored. Final. */
  "CONFIRMED",
  /** The provider definitively refused this payload, and no earlier attempt of it exists. Final. */
  "TERMINAL_FAILED",
  /** Replaced, or its target never existed; nothing of it is live unless its references say so. Final. */
  "SUPERSEDED",
] as const;

export type State = (typeof states)[number];

/** Nothing leaves these. */
export const finalStates = ["CONFIRMED", "TERMINAL_FAILED", "SUPERSEDED"] as const satisfies readonly State[];

/** A worker holds a lease in these, fenced by its owner token. */
export const leasedStates = ["IN_FLIGHT", "RECONCILING"] as const satisfies readonly State[];

const isIn = (list: readonly State[], state: State): boolean => list.includes(state);

export const isFinal = (state: State): boolean => isIn(finalStates, state);

/** What `Prefer: wait` waits for: nothing moves any more without a person. */
export const isResolved = (state: State): boolean => isFinal(state) || state === "NEEDS_REVIEW";
