import type { Action } from "@countersign/runtime";
import type { ActionCapability } from "../port.js";
import { answerRows, answersInWords, weSignAnswers } from "./answers.js";

const reference = { source: "WeSign API documentation, page “Idempotency” (seeds/002)", checkedOn: "2026-11-30" };

const lookup: ActionCapability["lookup"] = {
  byReference: true,
  byMetadata: true,
  many: true,
  minIntervalMs: 0,
  documented: false,
  consistencyLagMs: 10_000,
  note:
    "Assumed: GET /v1/signing-requests/{id}, and GET /v1/signing-requests?metadata[operation_id]=… or ?created_after=… " +
    "paged by cursor. " +
    "The reference names neither (it says that the first webhook carries our metadata): it may confirm, and proves " +
    "absence only after the connection has been verified. The lag is an assumption, too; neither a limit of how long " +
    "the list shows a request nor a poll budget is documented.",
};

/** What shows the effect of an action on a target: the target's own record, nothing of the action's own. */
const targetLookup: ActionCapability["lookup"] = {
  ...lookup,
  byMetadata: false,
  many: false,
  note: "Assumed: GET /v1/signing-requests/{id} of the target, whose status shows it. The reference names no read.",
};

const common = { quiescenceMs: 90_000, deadlineMs: 30_000, assumed: true, reference } as const;

/** Control 7: what each action relies on, and who says so. */
export const weSignCapabilities: Record<Action, ActionCapability> = {
  SEND: {
    ...common,
    supported: true,
    lookup,
    idempotency: {
      kind: "keyed",
      header: "Idempotency-Key",
      scope: "workspace, across endpoints; the URL is not part of the hash",
      retentionMs: 24 * 60 * 60 * 1000,
      staleLockMs: 60_000,
      changedBody: "422 idempotency_key_reuse, compared before the lock",
      replaySafe: false,
      replayRisk: "error-may-release-a-committed-request",
      note:
        "Read by POST /v1/signing-requests and POST /v1/templates/{id}/instantiate. Only a 2xx is cached and any error " +
        "releases the key; that an error leaves nothing behind, and that key and request commit together, is not " +
        "documented. After 60 s a retry takes the lock over while a slow first call may still run.",
    },
    webhookEvidence: true,
    secondStep: {
      repeatAnswer: "200 with already_confirmed: true",
      note:
        "POST /v1/documents/{id}/confirm mails a staged document; it reads no key, and a repeat sends nothing. What " +
        "its answer names besides already_confirmed, and how the document of a draft is found, is assumed.",
    },
    answers: [
      ...answersInWords(weSignAnswers.SEND),
      ...answersInWords(answerRows.template, "instantiate"),
      ...answersInWords(answerRows.target([]), "confirm"),
    ],
    answerIsAuthoritative: false,
  },
  VOID: {
    ...common,
    supported: true,
    lookup: targetLookup,
    idempotency: {
      kind: "natural",
      repeatAnswer: "409 invalid_state",
      note:
        "POST …/withdraw reads no key; a repeat changes nothing. There is no conditional withdraw: a signer may be faster. " +
        "Of a staged document POST /v1/documents/{id}/discard, whose repeat answers already_discarded, or 404 where a " +
        "file-only one is gone.",
    },
    answers: [
      ...answersInWords(answerRows.everywhere),
      ...answersInWords(answerRows.target(["invalid_state"]), "withdraw"),
      ...answersInWords(answerRows.target(["not_found"]), "discard"),
    ],
    webhookEvidence: true,
    // The reference does not describe the body of a withdraw's 2xx; the target is looked at instead.
    answerIsAuthoritative: false,
  },
  RESEND: {
    ...common,
    supported: true,
    idempotency: { kind: "none", note: "POST …/remind reads no key; every accepted call sends another mail." },
    lookup: {
      ...targetLookup,
      byReference: false,
      note: "No lookup shows a reminder: no proof is possible.",
    },
    answers: answersInWords(weSignAnswers.RESEND),
    webhookEvidence: false,
    answerIsAuthoritative: false,
  },
  FINALIZE: {
    ...common,
    supported: true,
    lookup: targetLookup,
    idempotency: {
      kind: "natural",
      repeatAnswer: "200 with the same record",
      note: "Two reads: the completed request, then GET …/document (assumed). Nothing is changed, so it may be repeated.",
    },
    answers: answersInWords(weSignAnswers.FINALIZE),
    // An event may say that the target is complete, never that it was archived.
    webhookEvidence: false,
    answerIsAuthoritative: true,
  },
};
