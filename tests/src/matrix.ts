import type { ScriptedFaultInput } from "@countersign/simulator";

/** A fault to script for the operation of a cell (the target's, for VOID, RESEND and FINALIZE). */
type Fault = Omit<ScriptedFaultInput, "operationId">;

/** What happens to the request at the provider, besides the fault. */
export type Story =
  /** Recipients or somebody else's hand, before the action on the target is planned. */
  | "target-completed"
  | "target-declined"
  | "target-expired"
  | "target-withdrawn"
  /** The same, after the first look. */
  | "target-completed-later"
  /** The target was only staged. */
  | "target-staged"
  /** Somebody makes a second request with our metadata before we look. */
  | "made-twice"
  /** A verified webhook with our metadata arrives before we look. */
  | "webhook-before-look";

/** Which evidence there is to be had: the connection. */
export type Evidence =
  | "lookup"
  | "lookup, not verified"
  | "lookup switched off"
  | "lookup fails"
  | "none"
  | "by reference"
  | "safe key";

export interface Cell {
  provider: "wesign" | "bare" | "odd-codes" | "safe-key" | "polled";
  action: "SEND" | "SEND staged" | "SEND stage only" | "VOID" | "RESEND" | "FINALIZE";
  fault: string;
  script?: readonly Fault[];
  story?: Story;
  evidence: Evidence;
  /** A written policy of the tenant for this connection. */
  policy?: "treat-unprovable-as-done" | "accept-duplicate-and-void" | "accept-replay-risk";
  /** Where it ends, and the reason code of its last transition. */
  state: string;
  reason: string;
  /** Calls that could change something at the provider, repeats included. */
  calls: number;
  /** Requests that the provider holds afterwards (SEND), mails they caused. */
  requests?: number;
  mails?: number;
}

const lost: Fault[] = [{ kind: "lost-response" }];
const neverArrived: Fault[] = [{ kind: "reset-before-commit" }];
const answer = (status: number, code: string, retryAfterSeconds?: number): Fault[] => [
  { kind: "answer", status, code, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) },
];

type Rest = Omit<Cell, "provider" | "action">;
const cells = (provider: Cell["provider"], action: Cell["action"], rows: readonly Rest[]): Cell[] =>
  rows.map((row) => ({ provider, action, ...row }));

/** action × fault × evidence: where each ends, and with how many calls. `docs/reconciliation.md` shows this table. */
export const matrix: readonly Cell[] = [
  ...cells("wesign", "SEND", [
    { fault: "none", evidence: "lookup", state: "CONFIRMED", reason: "accepted", calls: 1, requests: 1, mails: 1 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-by-lookup",
      calls: 1,
      requests: 1,
      mails: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup, not verified",
      state: "CONFIRMED",
      reason: "found-by-lookup",
      calls: 1,
      requests: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      story: "webhook-before-look",
      evidence: "lookup switched off",
      state: "CONFIRMED",
      reason: "evidence-by-webhook",
      calls: 1,
      requests: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup switched off",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup switched off",
      policy: "accept-replay-risk",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup fails",
      state: "UNKNOWN",
      reason: "lookup-failed",
      calls: 1,
      requests: 1,
    },
    {
      fault: "answer lost, made twice",
      script: lost,
      story: "made-twice",
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "more-than-one-match",
      calls: 2,
      requests: 2,
    },
    {
      fault: "answer lost, made twice",
      script: lost,
      story: "made-twice",
      evidence: "lookup",
      policy: "accept-duplicate-and-void",
      state: "CONFIRMED",
      reason: "kept-by-review",
      calls: 2,
      requests: 2,
    },
    {
      fault: "error after commit",
      script: [{ kind: "5xx-after-commit" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-by-lookup",
      calls: 1,
      requests: 1,
    },
    {
      fault: "error before commit",
      script: [{ kind: "5xx-before-commit" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup, not verified",
      state: "UNKNOWN",
      reason: "lookup-not-verified",
      calls: 1,
      requests: 0,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup switched off",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 0,
    },
    {
      fault: "slow commit",
      script: [{ kind: "slow-commit" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-by-lookup",
      calls: 1,
      requests: 1,
      mails: 1,
    },
    {
      fault: "refused (422)",
      script: answer(422, "invalid_signers"),
      evidence: "lookup",
      state: "TERMINAL_FAILED",
      reason: "refused",
      calls: 1,
      requests: 0,
    },
    {
      fault: "never arrived, then refused",
      script: [...neverArrived, ...answer(422, "invalid_signers")],
      evidence: "lookup",
      state: "TERMINAL_FAILED",
      reason: "refused",
      calls: 2,
      requests: 0,
    },
    {
      fault: "unknown code (422)",
      script: answer(422, "teapot"),
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
    {
      fault: "declined (429)",
      script: answer(429, "rate_limited", 1),
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
    {
      fault: "declined (401)",
      script: answer(401, "unauthorized"),
      evidence: "lookup",
      state: "UNKNOWN",
      reason: "declined",
      calls: 1,
      requests: 0,
    },
    {
      fault: "in progress (409)",
      script: answer(409, "idempotency_in_progress", 1),
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
    {
      fault: "key reused (422)",
      script: answer(422, "idempotency_key_reuse"),
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "key-reused-but-nothing-found",
      calls: 1,
      requests: 0,
    },
  ]),
  ...cells("wesign", "SEND staged", [
    { fault: "none", evidence: "lookup", state: "CONFIRMED", reason: "accepted", calls: 2, requests: 1, mails: 1 },
    {
      fault: "answer of the first step lost",
      script: [{ kind: "lost-response", endpoint: "instantiate" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "answer of the second step lost",
      script: [{ kind: "lost-response", endpoint: "confirm" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-by-reference",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "second step never arrived",
      script: [{ kind: "reset-before-commit", endpoint: "confirm" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 3,
      requests: 1,
      mails: 1,
    },
  ]),
  ...cells("wesign", "SEND stage only", [
    { fault: "none", evidence: "lookup", state: "CONFIRMED", reason: "accepted", calls: 1, requests: 1, mails: 0 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-staged-as-asked",
      calls: 1,
      requests: 1,
      mails: 0,
    },
  ]),
  ...cells("wesign", "VOID", [
    { fault: "none", evidence: "lookup", state: "CONFIRMED", reason: "target-is-void", calls: 1 },
    { fault: "answer lost", script: lost, evidence: "lookup", state: "CONFIRMED", reason: "target-is-void", calls: 1 },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "target-is-void",
      calls: 2,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup, not verified",
      state: "UNKNOWN",
      reason: "lookup-not-verified",
      calls: 1,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup fails",
      state: "UNKNOWN",
      reason: "lookup-failed",
      calls: 1,
    },
    {
      fault: "completed meanwhile (409)",
      story: "target-completed",
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "target-completed",
      calls: 1,
    },
    {
      fault: "declined meanwhile (409)",
      story: "target-declined",
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "target-declined",
      calls: 1,
    },
    {
      fault: "expired meanwhile (409)",
      story: "target-expired",
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "target-expired",
      calls: 1,
    },
    {
      fault: "voided by another hand (409)",
      story: "target-withdrawn",
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "target-is-void",
      calls: 1,
    },
    {
      fault: "target only staged",
      story: "target-staged",
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "target-is-discarded",
      calls: 1,
      mails: 0,
    },
    {
      fault: "declined (429)",
      script: answer(429, "rate_limited", 1),
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "target-is-void",
      calls: 2,
    },
  ]),
  ...cells("wesign", "RESEND", [
    { fault: "none", evidence: "lookup", state: "CONFIRMED", reason: "accepted", calls: 1, mails: 2 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      mails: 2,
    },
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup",
      policy: "treat-unprovable-as-done",
      state: "CONFIRMED",
      reason: "kept-by-review",
      calls: 1,
      mails: 2,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      mails: 1,
    },
    {
      fault: "completed meanwhile (409)",
      story: "target-completed",
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "target-completed",
      calls: 1,
      mails: 1,
    },
    {
      fault: "declined (429)",
      script: answer(429, "rate_limited", 1),
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      mails: 2,
    },
  ]),
  ...cells("wesign", "FINALIZE", [
    { fault: "none", story: "target-completed", evidence: "lookup", state: "CONFIRMED", reason: "accepted", calls: 0 },
    {
      fault: "not complete yet",
      story: "target-completed-later",
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 0,
    },
    {
      fault: "declined by a signer",
      story: "target-declined",
      evidence: "lookup",
      state: "NEEDS_REVIEW",
      reason: "target-declined",
      calls: 0,
    },
    {
      fault: "document can't be read once",
      story: "target-completed",
      script: [{ kind: "lookup-fail", endpoint: "document" }],
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 0,
    },
  ]),
  ...cells("bare", "SEND", [
    { fault: "none", evidence: "none", state: "CONFIRMED", reason: "accepted", calls: 1, requests: 1 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "none",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "none",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 0,
    },
    {
      fault: "refused (422)",
      script: answer(422, "invalid_signers"),
      evidence: "none",
      state: "TERMINAL_FAILED",
      reason: "refused",
      calls: 1,
      requests: 0,
    },
    {
      fault: "declined (429)",
      script: answer(429, "rate_limited", 1),
      evidence: "none",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
  ]),
  ...cells("bare", "VOID", [
    { fault: "none", evidence: "none", state: "CONFIRMED", reason: "accepted", calls: 1 },
    { fault: "answer lost", script: lost, evidence: "none", state: "NEEDS_REVIEW", reason: "unprovable", calls: 1 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "none",
      policy: "treat-unprovable-as-done",
      state: "CONFIRMED",
      reason: "kept-by-review",
      calls: 1,
    },
    {
      fault: "completed meanwhile (409)",
      story: "target-completed",
      evidence: "none",
      state: "NEEDS_REVIEW",
      reason: "void-refused-and-unreadable",
      calls: 1,
    },
  ]),
  ...cells("bare", "RESEND", [
    { fault: "none", evidence: "none", state: "CONFIRMED", reason: "accepted", calls: 1, mails: 2 },
    {
      fault: "answer lost",
      script: lost,
      evidence: "none",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      mails: 2,
    },
  ]),
  ...cells("odd-codes", "SEND", [
    {
      fault: "refused (404 address_mismatch)",
      script: answer(404, "address_mismatch"),
      evidence: "by reference",
      state: "TERMINAL_FAILED",
      reason: "refused",
      calls: 1,
      requests: 0,
    },
    {
      fault: "declined (408 daily_limit)",
      script: answer(408, "daily_limit"),
      evidence: "by reference",
      state: "UNKNOWN",
      reason: "declined",
      calls: 1,
      requests: 0,
    },
    {
      fault: "a bare 404",
      script: answer(404, "not_found"),
      evidence: "by reference",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 0,
    },
    {
      fault: "429 means nothing here",
      script: answer(429, "rate_limited"),
      evidence: "by reference",
      state: "NEEDS_REVIEW",
      reason: "unprovable",
      calls: 1,
      requests: 0,
    },
  ]),
  ...cells("odd-codes", "VOID", [
    {
      fault: "answer lost",
      script: lost,
      evidence: "by reference",
      state: "CONFIRMED",
      reason: "target-is-void",
      calls: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "by reference",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
    },
  ]),
  ...cells("safe-key", "SEND", [
    {
      fault: "answer lost",
      script: lost,
      evidence: "safe key",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "safe key",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
      mails: 1,
    },
    {
      fault: "never arrived, replay refused",
      script: [...neverArrived, ...answer(422, "invalid_signers")],
      evidence: "safe key",
      state: "TERMINAL_FAILED",
      reason: "replay-refused",
      calls: 2,
      requests: 0,
    },
    {
      fault: "in progress (409)",
      script: answer(409, "idempotency_in_progress", 1),
      evidence: "safe key",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
    {
      fault: "key reused (422)",
      script: answer(422, "idempotency_key_reuse"),
      evidence: "safe key",
      state: "NEEDS_REVIEW",
      reason: "key-reused-with-another-body",
      calls: 1,
      requests: 0,
    },
  ]),
  ...cells("polled", "SEND", [
    {
      fault: "answer lost",
      script: lost,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "found-by-lookup",
      calls: 1,
      requests: 1,
    },
    {
      fault: "never arrived",
      script: neverArrived,
      evidence: "lookup",
      state: "CONFIRMED",
      reason: "accepted",
      calls: 2,
      requests: 1,
    },
  ]),
];

/** The matrix as the table of `docs/reconciliation.md`. */
export function matrixTable(): string {
  const head =
    "| provider | action | fault | evidence to be had | ends | because | calls |\n| --- | --- | --- | --- | --- | --- | --- |";
  const rows = matrix.map(({ provider, action, fault, story, evidence, policy, state, reason, calls }) => {
    const told = story === "webhook-before-look" ? `${evidence}; a webhook` : evidence;
    return `| ${provider} | ${action} | ${fault} | ${policy === undefined ? told : `${told}; policy \`${policy}\``} | ${state} | \`${reason}\` | ${calls} |`;
  });
  return [head, ...rows].join("\n");
}
