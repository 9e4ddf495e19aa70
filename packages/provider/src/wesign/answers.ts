import type { Action } from "@countersign/runtime";
import type { AnswerRow, ReadAccepted } from "../classify.js";
import type { ActionCapability, Observation, ProviderStatus, RequestIds } from "../port.js";
import { usableReference } from "../reference.js";
import { isJsonObject, type JsonObject } from "../strict-json.js";

/** Any endpoint. The waits are those of the provider's own retry example: 60 s for 429, 5 s for 409. */
const everywhere: readonly AnswerRow[] = [
  {
    status: 429,
    code: "rate_limited",
    verdict: { kind: "declined", reason: "rate-limited", defaultRetryAfterMs: 60_000 },
  },
  { status: 401, code: "unauthorized", verdict: { kind: "declined", reason: "unauthorized" }, assumed: true },
  { status: 401, code: "invalid_api_key", verdict: { kind: "declined", reason: "unauthorized" }, assumed: true },
  { status: 402, code: "payment_required", verdict: { kind: "declined", reason: "quota" }, assumed: true },
  { status: 402, code: "quota_exceeded", verdict: { kind: "declined", reason: "quota" }, assumed: true },
  { status: 402, code: "plan_required", verdict: { kind: "declined", reason: "quota" }, assumed: true },
  { status: 403, code: "quota_exceeded", verdict: { kind: "declined", reason: "quota" }, assumed: true },
  { status: 403, code: "plan_required", verdict: { kind: "declined", reason: "quota" }, assumed: true },
  { status: 403, code: "forbidden", verdict: { kind: "refused" }, assumed: true },
  { status: 400, code: "invalid_request", verdict: { kind: "refused" }, assumed: true },
  { status: 400, code: "validation_error", verdict: { kind: "refused" }, assumed: true },
  { status: 422, code: "invalid_request", verdict: { kind: "refused" }, assumed: true },
  { status: 422, code: "validation_error", verdict: { kind: "refused" }, assumed: true },
];

const keyed: readonly AnswerRow[] = [
  { status: 409, code: "idempotency_in_progress", verdict: { kind: "in-progress", defaultRetryAfterMs: 5_000 } },
  { status: 422, code: "idempotency_key_reuse", verdict: { kind: "conflict" } },
];

/**
 * What an endpoint says of the object it is about. We hold a reference that the provider gave us: "no such request"
 * contradicts that, it does not refuse this attempt. `documented`: the codes that the reference names there.
 */
const target = (documented: readonly string[]): readonly AnswerRow[] =>
  [
    { status: 409, code: "invalid_state", verdict: { kind: "conflict" } } as const,
    { status: 404, code: "not_found", verdict: { kind: "conflict" } } as const,
  ].map((row) => (documented.includes(row.code) ? row : { ...row, assumed: true }));

/** What an endpoint says of the body of a SEND. The reference lists no such codes. */
const content: readonly AnswerRow[] = [
  [400, "invalid_json"],
  [413, "document_too_large"],
  [415, "unsupported_media_type"],
  [422, "invalid_document"],
  [422, "invalid_signers"],
  [422, "invalid_fields"],
  [422, "invalid_observer_emails"],
  [422, "invalid_signing_mode"],
  [422, "invalid_locale"],
  [422, "invalid_expires_in_days"],
  [422, "invalid_metadata"],
].map(([status, code]) => ({
  status: Number(status),
  code: String(code),
  verdict: { kind: "refused" },
  assumed: true,
}));

const template: readonly AnswerRow[] = [
  { status: 404, code: "not_found", verdict: { kind: "refused" }, assumed: true },
];

/** The rows by what they speak of, for adapters that share some of them. */
export const answerRows = { everywhere, keyed, content, template, target } as const;

/** The documented (or, where marked, assumed) refusals per action and endpoint. */
export const weSignAnswers = {
  SEND: [...everywhere, ...keyed, ...content],
  /** `…/instantiate`. */
  "SEND-TEMPLATE": [...everywhere, ...keyed, ...content, ...template],
  /** `…/confirm`, the second step of a SEND. */
  CONFIRM: [...everywhere, ...target([])],
  VOID: [...everywhere, ...target(["invalid_state"])],
  /** `…/discard`, the VOID of a staged document. */
  DISCARD: [...everywhere, ...target(["not_found"])],
  RESEND: [...everywhere, ...target([])],
  /** Every read. */
  FINALIZE: [...everywhere, ...target([])],
} satisfies Record<Action, readonly AnswerRow[]> & Record<string, readonly AnswerRow[]>;

const statuses = new Map<unknown, ProviderStatus>([
  ["draft", "draft"],
  ["staged", "staged"],
  ["sent", "sent"],
  ["viewed", "viewed"],
  // One of several signers; all of them is "completed".
  ["signed", "partially-signed"],
  ["completed", "completed"],
  ["declined", "declined"],
  ["withdrawn", "withdrawn"],
  ["expired", "expired"],
  ["discarded", "discarded"],
]);

/** The provider's word for a request's status in ours; undefined for a word we do not know. */
export function weSignStatus(word: unknown): ProviderStatus | undefined {
  return statuses.get(word);
}

/** Our own ids in a record's metadata. */
export function ownIds(record: JsonObject): { operationId?: string; tenantId?: string } {
  const { metadata } = record;
  if (!isJsonObject(metadata)) return {};
  return {
    ...(typeof metadata.operation_id === "string" ? { operationId: metadata.operation_id } : {}),
    ...(typeof metadata.tenant === "string" ? { tenantId: metadata.tenant } : {}),
  };
}

/** Rows as words, for printing what an adapter relies on. `where`: the endpoint, where an action has several. */
export const answersInWords = (
  rows: readonly AnswerRow[],
  where?: string,
): readonly NonNullable<ActionCapability["answers"]>[number][] =>
  rows.map(({ status, code, verdict, assumed }) => ({
    status,
    code,
    means: `${wordsOf(verdict)}${where === undefined ? "" : `, from ${where}`}`,
    assumed: assumed === true,
  }));

function wordsOf(verdict: AnswerRow["verdict"]): string {
  switch (verdict.kind) {
    case "declined":
      return `declined for now (${verdict.reason})`;
    case "in-progress":
      return "ambiguous: a call under this key is running";
    case "refused":
    case "conflict":
      return verdict.kind;
  }
}

/** Reads the 2xx of a SEND. A record that names another operation or tenant is not an answer to ours. */
export function sendAccepted(ids: RequestIds, stageOnly: boolean): ReadAccepted {
  return (httpStatus, body, headers) => {
    const ref = usableReference(body.id) ?? usableReference(body.document_id);
    if (ref === undefined) return undefined;
    const carried = ownIds(body);
    if (
      (carried.operationId ?? ids.operationId) !== ids.operationId ||
      (carried.tenantId ?? ids.tenantId) !== ids.tenantId
    ) {
      return { kind: "ambiguous", cause: "answer-names-another-operation", httpStatus };
    }
    if (httpStatus === 202) return { kind: "queued", ref, httpStatus };
    if (httpStatus !== 200 && httpStatus !== 201) return undefined;
    const recordStatus = weSignStatus(body.status);
    const mailed = recordStatus !== "staged" && recordStatus !== "draft";
    // A word we don't know may mean "not yet": the reference counts, the rest is looked up. So does an unasked staging.
    if (body.status !== undefined && recordStatus === undefined) return { kind: "queued", ref, httpStatus };
    if (!mailed && !stageOnly) return { kind: "queued", ref, httpStatus, recordStatus };
    const accepted: Observation = { kind: "accepted", ref, httpStatus };
    if (recordStatus !== undefined) accepted.recordStatus = recordStatus;
    if (headers["idempotent-replayed"] === "true") accepted.replayed = true;
    return accepted;
  };
}

/** Reads the 2xx of VOID, RESEND and FINALIZE: it has to name the request that was meant. */
export function targetAccepted(targetRef: string): ReadAccepted {
  return (httpStatus, body) => {
    const named = usableReference(body.id) ?? usableReference(body.signing_request_id);
    if (named === undefined || (httpStatus !== 200 && httpStatus !== 201)) return undefined;
    if (named !== targetRef) return { kind: "ambiguous", cause: "answer-names-another-request", httpStatus };
    const recordStatus = weSignStatus(body.status);
    const accepted: Observation = { kind: "accepted", ref: named, httpStatus };
    return recordStatus === undefined ? accepted : { ...accepted, recordStatus };
  };
}
