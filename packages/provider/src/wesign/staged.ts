import { classify } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type { CallContext, Observation, PreparedRequest } from "../port.js";
import { usableReference } from "../reference.js";
import type { JsonObject } from "../strict-json.js";
import { bearer, submitFurther } from "../submit-request.js";
import { weSignAnswers, weSignStatus } from "./answers.js";
import { readRecord, recordRequest, rest } from "./record.js";

const onDocument = (documentId: string, verb: "confirm" | "discard"): PreparedRequest => ({
  method: "POST",
  path: `/v1/documents/${encodeURIComponent(documentId)}/${verb}`,
  body: { kind: "none" },
});

/**
 * The second step of a SEND whose document is staged: `confirm` mails it, and its repeat answers `already_confirmed` and
 * sends nothing. Its document id comes from the request's own record, so that only a reference has to be kept.
 */
export async function confirmStaged(
  transport: HttpTransport,
  call: CallContext,
  ref: string,
  isFirstCall: boolean,
): Promise<Observation> {
  const startedAt = performance.now();
  const onRef = { ...call, targetRef: ref };
  const read = await readRecord(transport, recordRequest, onRef, !isFirstCall);
  if ("observation" in read && read.observation.kind !== "conflict") return stillADraft(read.observation, ref);
  // A document without signers has no request to read: its own id was the reference.
  const record: JsonObject = "record" in read ? read.record : {};
  const status = weSignStatus(record.status);
  if (status !== undefined && status !== "staged" && status !== "draft" && status !== "discarded") {
    return { kind: "accepted", ref, recordStatus: status, httpStatus: 200 };
  }
  const documentId = documentOf(record, ref);
  if (status === "discarded" || documentId === undefined)
    return { kind: "conflict", code: "draft-gone", httpStatus: 200 };
  const outcome = await submitFurther(transport, onDocument(documentId, "confirm"), rest(onRef, startedAt), bearer);
  const observation = classify(outcome, weSignAnswers.VOID, (httpStatus, body) => {
    if (httpStatus !== 200 && httpStatus !== 201) return undefined;
    const named = usableReference(body.id);
    if (named !== undefined && named !== ref)
      return { kind: "ambiguous", cause: "answer-names-another-request", httpStatus };
    if (named === undefined && body.already_confirmed !== true) return undefined;
    return { kind: "accepted", ref, recordStatus: "sent", httpStatus };
  });
  return stillADraft(observation, ref);
}

/** The second call never left: there is a draft and no send, which is more than "not sent" says. */
function stillADraft(observation: Observation, ref: string): Observation {
  return observation.kind === "not-sent" ? { kind: "queued", ref, recordStatus: "staged", httpStatus: 0 } : observation;
}

/**
 * VOID of a staged document: `discard`, whose repeat answers `already_discarded`, or 404 where a file-only instance is
 * gone (a conflict: settled by reading the target).
 */
export async function discardStaged(transport: HttpTransport, call: CallContext): Promise<Observation> {
  const startedAt = performance.now();
  const ref = call.targetRef ?? "";
  const read = await readRecord(transport, recordRequest, call, false);
  if ("observation" in read && read.observation.kind !== "conflict") return read.observation;
  const documentId = documentOf("record" in read ? read.record : {}, ref);
  if (documentId === undefined) return { kind: "ambiguous", cause: "no-document-id", httpStatus: 200 };
  const outcome = await submitFurther(transport, onDocument(documentId, "discard"), rest(call, startedAt), bearer);
  return classify(outcome, weSignAnswers.VOID, (httpStatus, body) => {
    const done =
      body.discarded === true || body.already_discarded === true || weSignStatus(body.status) === "discarded";
    return httpStatus === 200 && done ? { kind: "accepted", ref, recordStatus: "discarded", httpStatus } : undefined;
  });
}

/** The document of a request; the reference itself where the record was never a request but the document. */
function documentOf(record: JsonObject, ref: string): string | undefined {
  return usableReference(record.document_id) ?? usableReference(ref);
}
