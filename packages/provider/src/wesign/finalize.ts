import { classify } from "../classify.js";
import type { CallOutcome, HttpTransport } from "../http-call.js";
import type { CallContext, Observation, PreparedRequest } from "../port.js";
import { bearer, permitted, tellRateLimit } from "../submit-request.js";
import { weSignAnswers, weSignStatus } from "./answers.js";
import { readRecord, rest } from "./record.js";

/** No sealed document is larger; one that is isn't taken. */
const maxDocumentBytes = 100 * 1024 * 1024;

/**
 * FINALIZE: read the completed request, fetch its sealed document, put it into the archive. Nothing is changed at the
 * provider, so whatever goes wrong may be done again.
 */
export async function finalize(
  transport: HttpTransport,
  request: PreparedRequest,
  call: CallContext,
): Promise<Observation> {
  const startedAt = performance.now();
  const read = await readRecord(transport, request, call, false);
  if ("observation" in read) return read.observation;
  const word = typeof read.record.status === "string" ? read.record.status : "no-status";
  switch (weSignStatus(read.record.status)) {
    case "completed":
      return await archiveSealed(transport, rest(call, startedAt));
    case "declined":
    case "withdrawn":
    case "expired":
    case "discarded":
      return { kind: "conflict", code: `target-${word}`, httpStatus: 200 };
    case undefined:
      return { kind: "ambiguous", cause: "unknown-status", httpStatus: 200 };
    default:
      return { kind: "not-yet", code: word, httpStatus: 200 };
  }
}

async function archiveSealed(transport: HttpTransport, call: CallContext): Promise<Observation> {
  const ref = call.targetRef ?? "";
  const { archive } = call;
  if (archive === undefined) return archiveUnavailable;
  if (!(await permitted(call))) return { kind: "not-sent", cause: "no-permit" };
  const outcome = await transport.send({
    method: "GET",
    baseUrl: call.baseUrl,
    path: `/v1/signing-requests/${encodeURIComponent(ref)}/document`,
    headers: { accept: "application/pdf", ...bearer(call.credential) },
    deadlineMs: call.deadlineMs,
    mayWrite: () => call.mayWrite(),
    ...(call.signal === undefined ? {} : { signal: call.signal }),
    maxResponseBytes: maxDocumentBytes,
  });
  tellRateLimit(outcome, call);
  const unread = whyUnread(outcome);
  if (unread !== undefined) return unread;
  const sealed = outcome.kind === "response" && isPdf(outcome) ? outcome.body : undefined;
  if (sealed === undefined) return { kind: "ambiguous", cause: "sealed-document-unusable", httpStatus: 200 };
  try {
    const archivedSha256 = await archive(sealed);
    const archivedBytes = sealed.byteLength;
    return { kind: "accepted", ref, recordStatus: "completed", httpStatus: 200, archivedSha256, archivedBytes };
  } catch {
    // The archive has its own log; the document can be fetched again.
    return archiveUnavailable;
  }
}

const archiveUnavailable: Observation = { kind: "not-yet", code: "archive-unavailable", httpStatus: 200 };

/** No document came. Only "not now" is told apart (it pauses the connection); the rest is read again. */
function whyUnread(outcome: CallOutcome): Observation | undefined {
  if (outcome.kind === "nothing-written") return { kind: "not-sent", cause: outcome.cause };
  if (outcome.kind === "after-write") return { kind: "ambiguous", cause: "sealed-document-not-read" };
  if (outcome.kind === "too-large" || outcome.status === 200) return undefined;
  const read = classify(outcome, weSignAnswers.FINALIZE, () => undefined);
  if (read.kind === "declined") return read;
  const wait = "retryAfterMs" in read ? read.retryAfterMs : undefined;
  const refused = { kind: "ambiguous", cause: "sealed-document-refused", httpStatus: outcome.status } as const;
  return wait === undefined ? refused : { ...refused, retryAfterMs: wait };
}

function isPdf({ headers, body }: Extract<CallOutcome, { kind: "response" }>): boolean {
  const header = headers["content-type"];
  const type = typeof header === "string" ? header.split(";")[0]?.trim().toLowerCase() : undefined;
  return type === "application/pdf" && Buffer.from(body.subarray(0, 5)).toString("latin1") === "%PDF-";
}
