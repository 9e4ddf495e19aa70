import { classify } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type { CallContext, Observation, PreparedRequest, ProviderStatus } from "../port.js";
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

/** A draft of a SEND: the request's reference, and its document where an answer has named that. */
export interface Draft {
  ref: string;
  documentId?: string | undefined;
}

/**
 * The second step of a SEND that has just been staged: `confirm` mails it, and its repeat answers `already_confirmed` and
 * sends nothing. A step that never left leaves a draft and no send, which is more than "not sent" says.
 */
export async function confirmStaged(
  transport: HttpTransport,
  call: CallContext,
  { ref, documentId }: Draft,
): Promise<Observation> {
  const observation =
    documentId === undefined
      ? await confirmKnown(transport, call, ref, false)
      : await confirm(transport, call, ref, documentId);
  return observation.kind === "not-sent"
    ? { kind: "queued", ref, recordStatus: "staged", httpStatus: 201 }
    : observation;
}

/**
 * The second step alone, for a draft of an earlier attempt: its own record says whether it is still to be made, and
 * names the document. What is `not-sent` here changed nothing: a read may have left, no `confirm`.
 */
export function continueDraft(transport: HttpTransport, call: CallContext, ref: string): Promise<Observation> {
  return confirmKnown(transport, call, ref, true);
}

async function confirmKnown(
  transport: HttpTransport,
  call: CallContext,
  ref: string,
  isFirstCall: boolean,
): Promise<Observation> {
  const startedAt = performance.now();
  const read = await readRecord(transport, recordRequest, { ...call, targetRef: ref }, !isFirstCall);
  if ("observation" in read && !isGone(read.observation)) return read.observation;
  // A document without signers has no request to read: its own id was the reference.
  const record: JsonObject = "record" in read ? read.record : {};
  const status = weSignStatus(record.status);
  if (status === "discarded") return { kind: "conflict", code: "draft-discarded", httpStatus: 200 };
  if (status !== undefined && !isUnsent(status)) {
    return { kind: "accepted", ref, recordStatus: status, httpStatus: 200 };
  }
  return await confirm(transport, rest(call, startedAt), ref, documentOf(record, ref));
}

async function confirm(
  transport: HttpTransport,
  call: CallContext,
  ref: string,
  documentId: string,
): Promise<Observation> {
  const outcome = await submitFurther(transport, onDocument(documentId, "confirm"), call, bearer);
  return classify(outcome, weSignAnswers.CONFIRM, (httpStatus, body) => {
    if (httpStatus !== 200 && httpStatus !== 201) return undefined;
    const other = namesAnother(body, ref, documentId, httpStatus);
    if (other !== undefined) return other;
    if (body.id === undefined && body.already_confirmed !== true) return undefined;
    const recordStatus = body.status === undefined ? "sent" : weSignStatus(body.status);
    // A record that doesn't show it as sent, or in a word we don't know, is looked at again.
    if (recordStatus === undefined) return { kind: "queued", ref, httpStatus };
    if (isUnsent(recordStatus) || recordStatus === "discarded")
      return { kind: "queued", ref, recordStatus, httpStatus };
    return { kind: "accepted", ref, recordStatus, httpStatus };
  });
}

/**
 * VOID of a staged document: `discard`, whose repeat answers `already_discarded`, or 404 where a file-only instance is
 * gone (a conflict: settled by reading the target).
 */
export async function discardStaged(transport: HttpTransport, call: CallContext): Promise<Observation> {
  const startedAt = performance.now();
  const ref = usableReference(call.targetRef);
  if (ref === undefined) return { kind: "not-sent", cause: "no-target-reference" };
  const read = await readRecord(transport, recordRequest, call, false);
  if ("observation" in read && !isGone(read.observation)) return read.observation;
  const documentId = documentOf("record" in read ? read.record : {}, ref);
  const outcome = await submitFurther(transport, onDocument(documentId, "discard"), rest(call, startedAt), bearer);
  return classify(outcome, weSignAnswers.DISCARD, (httpStatus, body) => {
    const other = namesAnother(body, ref, documentId, httpStatus);
    if (other !== undefined) return other;
    const done =
      body.discarded === true || body.already_discarded === true || weSignStatus(body.status) === "discarded";
    return httpStatus === 200 && done ? { kind: "accepted", ref, recordStatus: "discarded", httpStatus } : undefined;
  });
}

const isUnsent = (status: ProviderStatus): boolean => status === "staged" || status === "draft";

const isGone = (observation: Observation): boolean => observation.kind === "conflict" && observation.httpStatus === 404;

function namesAnother(body: JsonObject, ref: string, documentId: string, httpStatus: number): Observation | undefined {
  if (body.id === undefined || body.id === ref || body.id === documentId) return undefined;
  return { kind: "ambiguous", cause: "answer-names-another-request", httpStatus };
}

/** The document of a request; the reference itself where the record was never a request but the document. */
function documentOf(record: JsonObject, ref: string): string {
  return usableReference(record.document_id) ?? ref;
}
