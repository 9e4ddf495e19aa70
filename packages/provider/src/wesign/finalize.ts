import type { HttpTransport } from "../http-call.js";
import type { CallContext, Observation, PreparedRequest } from "../port.js";
import { retryAfterMs } from "../retry-after.js";
import { bearer, permitted, tellRateLimit } from "../submit-request.js";
import { weSignStatus } from "./answers.js";
import { readRecord, rest } from "./record.js";

/** No sealed document is larger; one that is proves nothing. */
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
  if (outcome.kind === "nothing-written") return { kind: "not-sent", cause: outcome.cause };
  if (outcome.kind !== "response") return { kind: "ambiguous", cause: "sealed-document-not-read" };
  if (outcome.status !== 200) {
    const wait = retryAfterMs(outcome.headers, outcome.receivedAtMs);
    const cause = "sealed-document-refused";
    return {
      kind: "ambiguous",
      cause,
      httpStatus: outcome.status,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    };
  }
  if (!isPdf(outcome.headers["content-type"], outcome.body)) {
    return { kind: "ambiguous", cause: "sealed-document-unusable", httpStatus: 200 };
  }
  try {
    const archivedSha256 = await call.archive?.(outcome.body);
    if (archivedSha256 === undefined) return { kind: "not-yet", code: "archive-unavailable", httpStatus: 200 };
    const archivedBytes = outcome.body.byteLength;
    return { kind: "accepted", ref, recordStatus: "completed", httpStatus: 200, archivedSha256, archivedBytes };
  } catch {
    // The archive has its own log; the document can be fetched again.
    return { kind: "not-yet", code: "archive-unavailable", httpStatus: 200 };
  }
}

function isPdf(contentType: string | string[] | undefined, bytes: Uint8Array): boolean {
  const type = typeof contentType === "string" ? contentType.split(";")[0]?.trim().toLowerCase() : undefined;
  return type === "application/pdf" && Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-";
}
