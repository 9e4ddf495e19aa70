import type { CallOutcome, ResponseHeaders } from "./http-call.js";
import type { DeclineReason, Observation } from "./port.js";
import { retryAfterMs } from "./retry-after.js";
import { isJsonObject, type JsonObject, parseStrictObject } from "./strict-json.js";

/**
 * One documented refusal of a provider: only this status together with this machine code, in the provider's own error
 * form, proves anything. Whatever no row names is ambiguous.
 */
export interface AnswerRow {
  status: number;
  code: string;
  verdict:
    | { kind: "refused" }
    | { kind: "conflict" }
    | { kind: "declined"; reason: DeclineReason; defaultRetryAfterMs?: number }
    /** A call under our key is running: proves a call, not its end. */
    | { kind: "in-progress"; defaultRetryAfterMs: number };
  /** Not in the provider's reference, but in the shape this adapter assumes. */
  assumed?: boolean;
}

/** Reads a 2xx whose body is a JSON object. undefined: nothing usable in it. */
export type ReadAccepted = (status: number, body: JsonObject, headers: ResponseHeaders) => Observation | undefined;

/**
 * What one call proved. Pure. Everything that is neither a usable 2xx nor a row of `table` is ambiguous: 3xx, any 5xx,
 * a proxy's page, an unknown code, an answer that ended early or is not strict JSON.
 */
export function classify(outcome: CallOutcome, table: readonly AnswerRow[], readAccepted: ReadAccepted): Observation {
  switch (outcome.kind) {
    case "nothing-written":
      return { kind: "not-sent", cause: outcome.cause };
    case "too-large":
      return { kind: "ambiguous", cause: "answer-too-large", httpStatus: outcome.status };
    case "after-write":
      return classifyBroken(outcome);
    case "response":
      return classifyAnswer(outcome, table, readAccepted);
  }
}

/** The machine code of an error body: `{"error":{"code"}}`, `{"error":"code"}` or `{"code"}`; else undefined. */
export function errorCode(body: JsonObject | undefined): string | undefined {
  if (body === undefined) return undefined;
  const { error, code } = body;
  if (typeof error === "string") return error;
  if (isJsonObject(error)) return typeof error.code === "string" ? error.code : undefined;
  return error === undefined && typeof code === "string" ? code : undefined;
}

function classifyBroken(outcome: Extract<CallOutcome, { kind: "after-write" }>): Observation {
  if (outcome.status === undefined) return { kind: "ambiguous", cause: outcome.cause };
  const wait = retryAfterMs(outcome.headers ?? {}, outcome.receivedAtMs);
  return ambiguous(`answer-cut-short:${outcome.cause}`, outcome.status, wait);
}

function classifyAnswer(
  outcome: Extract<CallOutcome, { kind: "response" }>,
  table: readonly AnswerRow[],
  readAccepted: ReadAccepted,
): Observation {
  const { status, headers } = outcome;
  const wait = retryAfterMs(headers, outcome.receivedAtMs);
  const body = parseStrictObject(outcome.body);
  if (status >= 200 && status < 300) {
    if (body === undefined) return ambiguous("unparsable-answer", status, wait);
    return readAccepted(status, body, headers) ?? ambiguous("no-usable-reference", status, wait);
  }
  if (status >= 500) return ambiguous("server-error", status, wait);
  if (status < 400) return ambiguous("redirect", status, wait);
  const code = errorCode(body);
  const row = table.find((candidate) => candidate.status === status && candidate.code === code);
  if (row === undefined) return ambiguous("unrecognised-answer", status, wait);
  return judge(row, wait);
}

function judge(row: AnswerRow, wait: number | undefined): Observation {
  const { status: httpStatus, code, verdict } = row;
  switch (verdict.kind) {
    case "refused":
    case "conflict":
      return { kind: verdict.kind, code, httpStatus };
    case "declined": {
      const retry = wait ?? verdict.defaultRetryAfterMs;
      const observation = { kind: "declined", reason: verdict.reason, code, httpStatus } as const;
      return retry === undefined ? observation : { ...observation, retryAfterMs: retry };
    }
    case "in-progress":
      return ambiguous(code, httpStatus, wait ?? verdict.defaultRetryAfterMs);
  }
}

function ambiguous(cause: string, httpStatus: number, wait: number | undefined): Observation {
  return { kind: "ambiguous", cause, httpStatus, ...(wait === undefined ? {} : { retryAfterMs: wait }) };
}
