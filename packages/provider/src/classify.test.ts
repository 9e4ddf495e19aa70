import { describe, expect, it } from "vitest";
import { classify } from "./classify.js";
import type { CallOutcome } from "./http-call.js";
import type { Observation } from "./port.js";
import { sendAccepted, targetAccepted, weSignAnswers } from "./wesign/answers.js";

const ids = { tenantId: "acme", operationId: "op-1" };
type Table = keyof typeof weSignAnswers;

/** The verdict in one line: kind, what it rests on, and the wait in seconds. */
function line(observation: Observation): string {
  const basis = "ref" in observation ? observation.ref : "code" in observation ? observation.code : observation.cause;
  const more = "reason" in observation ? ` ${observation.reason}` : "";
  const status = "recordStatus" in observation ? ` ${observation.recordStatus}` : "";
  const wait = "retryAfterMs" in observation ? ` ${observation.retryAfterMs / 1000}s` : "";
  return `${observation.kind} ${basis}${more}${status}${wait}`;
}

function verdict(table: Table, outcome: CallOutcome): string {
  const read = table.startsWith("SEND") ? sendAccepted(ids, false) : targetAccepted("sr_1");
  return line(classify(outcome, weSignAnswers[table], read));
}

const HTML = "<html><body>Bad gateway</body></html>";
const error = (code: string) => `{"error":{"code":"${code}","message":"x"}}`;

describe("an answer proves what this table says, and nothing more", () => {
  // biome-ignore format: aligned, so that the last column can be read down
  it.each<[Table, number, string, string | undefined, string]>([
    ["SEND",          201, '{"id":"sr_1","status":"sent"}',       undefined, "accepted sr_1 sent"],
    ["SEND",          201, '{"id":"sr_1"}',                       undefined, "accepted sr_1"],
    ["SEND",          201, '{"id":"sr_1","status":"withdrawn"}',  undefined, "accepted sr_1 withdrawn"],
    ["SEND",          202, '{"id":"sr_1"}',                       undefined, "queued sr_1"],
    ["SEND",          201, '{"id":"sr_1","status":"rendering"}',  undefined, "queued sr_1"],
    ["SEND-TEMPLATE", 200, '{"id":"sr_1","status":"sent"}',       undefined, "accepted sr_1 sent"],
    ["SEND-TEMPLATE", 201, '{"id":"sr_1","status":"staged"}',     undefined, "queued sr_1 staged"],
    ["SEND-TEMPLATE", 201, '{"document_id":"d","status":"staged"}', undefined, "queued d staged"],
    ["SEND",          201, '{"id":"sr_1","metadata":{"operation_id":"op-2"}}', undefined, "ambiguous answer-names-another-operation"],
    ["SEND",          201, '{"id":"sr_1","metadata":{"operation_id":"op-1","tenant":"other"}}', undefined, "ambiguous answer-names-another-operation"],
    ["SEND",          200, "{}",                                  undefined, "ambiguous no-usable-reference"],
    ["SEND",          200, '{"id":7}',                            undefined, "ambiguous no-usable-reference"],
    ["SEND",          200, '{"id":"a b"}',                        undefined, "ambiguous no-usable-reference"],
    ["SEND",          200, '{"id":".."}',                         undefined, "ambiguous no-usable-reference"],
    ["SEND",          203, '{"id":"sr_1"}',                       undefined, "ambiguous no-usable-reference"],
    ["SEND",          200, '{"id":"sr_1","id":"sr_2"}',           undefined, "ambiguous unparsable-answer"],
    ["SEND",          200, '[{"id":"sr_1"}]',                     undefined, "ambiguous unparsable-answer"],
    ["SEND",          200, '{"id":"sr_1"',                        undefined, "ambiguous unparsable-answer"],
    ["SEND",          200, HTML,                                  undefined, "ambiguous unparsable-answer"],
    ["SEND",          204, "",                                    undefined, "ambiguous unparsable-answer"],
    ["SEND",          302, "",                                    undefined, "ambiguous redirect"],
    ["SEND",          304, "",                                    undefined, "ambiguous redirect"],
    ["SEND",          400, error("invalid_request"),              undefined, "refused invalid_request"],
    ["SEND",          422, '{"error":"validation_error"}',        undefined, "refused validation_error"],
    ["SEND",          422, '{"code":"validation_error"}',         undefined, "refused validation_error"],
    ["SEND",          422, '{"error":{},"code":"validation_error"}', undefined, "ambiguous unrecognised-answer"],
    ["SEND",          403, error("forbidden"),                    undefined, "refused forbidden"],
    ["SEND",          400, HTML,                                  undefined, "ambiguous unrecognised-answer"],
    ["SEND",          403, HTML,                                  undefined, "ambiguous unrecognised-answer"],
    ["SEND",          413, HTML,                                  undefined, "ambiguous unrecognised-answer"],
    ["SEND",          413, error("document_too_large"),           undefined, "refused document_too_large"],
    ["SEND",          422, error("something_new"),                undefined, "ambiguous unrecognised-answer"],
    ["SEND",          400, error("rate_limited"),                 undefined, "ambiguous unrecognised-answer"],
    ["SEND",          404, error("not_found"),                    undefined, "ambiguous unrecognised-answer"],
    ["SEND-TEMPLATE", 404, error("not_found"),                    undefined, "refused not_found"],
    ["SEND",          408, "",                                    "5",       "ambiguous unrecognised-answer 5s"],
    ["SEND",          409, error("idempotency_in_progress"),      "17",      "ambiguous idempotency_in_progress 17s"],
    ["SEND",          409, error("idempotency_in_progress"),      undefined, "ambiguous idempotency_in_progress 5s"],
    ["SEND",          409, error("idempotency_in_progress"),      "soon",    "ambiguous idempotency_in_progress 5s"],
    ["SEND",          422, error("idempotency_key_reuse"),        undefined, "conflict idempotency_key_reuse"],
    ["SEND",          429, error("rate_limited"),                 "30",      "declined rate_limited rate-limited 30s"],
    ["SEND",          429, error("rate_limited"),                 undefined, "declined rate_limited rate-limited 60s"],
    ["SEND",          429, HTML,                                  "30",      "ambiguous unrecognised-answer 30s"],
    ["SEND",          401, error("unauthorized"),                 undefined, "declined unauthorized unauthorized"],
    ["SEND",          401, "",                                    undefined, "ambiguous unrecognised-answer"],
    ["SEND",          402, error("quota_exceeded"),               undefined, "declined quota_exceeded quota"],
    ["SEND",          403, error("plan_required"),                undefined, "declined plan_required quota"],
    ["SEND",          500, error("internal_error"),               undefined, "ambiguous server-error"],
    ["SEND",          500, error("validation_error"),             undefined, "ambiguous server-error"],
    ["SEND",          503, error("unavailable"),                  "120",     "ambiguous server-error 120s"],
    ["SEND",          599, HTML,                                  undefined, "ambiguous server-error"],
    ["VOID",          200, '{"id":"sr_1","status":"withdrawn"}',  undefined, "accepted sr_1 withdrawn"],
    ["VOID",          200, '{"id":"sr_1"}',                       undefined, "accepted sr_1"],
    ["VOID",          200, '{"id":"sr_2","status":"withdrawn"}',  undefined, "ambiguous answer-names-another-request"],
    ["VOID",          200, "{}",                                  undefined, "ambiguous no-usable-reference"],
    ["VOID",          409, error("invalid_state"),                undefined, "conflict invalid_state"],
    ["VOID",          404, error("not_found"),                    undefined, "conflict not_found"],
    ["VOID",          404, HTML,                                  undefined, "ambiguous unrecognised-answer"],
    ["SEND",          409, error("invalid_state"),                undefined, "ambiguous unrecognised-answer"],
  ])("%s %i %s, Retry-After %s: %s", (table, status, body, retryAfter, expected) => {
    const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
    const outcome: CallOutcome = { kind: "response", status, headers, body: Buffer.from(body), receivedAtMs: 0 };
    expect(verdict(table, outcome)).toBe(expected);
  });

  // biome-ignore format: aligned
  it.each<[CallOutcome, string]>([
    [{ kind: "nothing-written", cause: "ECONNREFUSED" },                                              "not-sent ECONNREFUSED"],
    [{ kind: "after-write", cause: "UND_ERR_SOCKET", receivedAtMs: 0 },                               "ambiguous UND_ERR_SOCKET"],
    [{ kind: "after-write", cause: "deadline", status: 201, receivedAtMs: 0 },                        "ambiguous answer-cut-short:deadline"],
    [{ kind: "after-write", cause: "x", status: 429, headers: { "retry-after": "9" }, receivedAtMs: 0 }, "ambiguous answer-cut-short:x 9s"],
    [{ kind: "too-large", status: 400 },                                                              "ambiguous answer-too-large"],
  ])("no whole answer %j: %s", (outcome, expected) => {
    expect(verdict("SEND", outcome)).toBe(expected);
  });

  it("a replayed answer says so, and a staging that was asked for is accepted as staged", () => {
    const answer = (headers: Record<string, string>): CallOutcome => ({
      kind: "response",
      status: 201,
      headers,
      body: Buffer.from('{"id":"sr_1","status":"staged"}'),
      receivedAtMs: 0,
    });
    const read = sendAccepted(ids, true);
    expect(classify(answer({ "idempotent-replayed": "true" }), weSignAnswers["SEND-TEMPLATE"], read)).toEqual({
      kind: "accepted",
      ref: "sr_1",
      httpStatus: 201,
      recordStatus: "staged",
      replayed: true,
    });
  });
});
