import type { Action } from "@countersign/runtime";
import type { AnswerRow } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type { ActionCapability } from "../port.js";
import { answerRows, answersInWords } from "../wesign/answers.js";
import { type Dialect, DialectProvider } from "./dialect-provider.js";

const noLookup: ActionCapability["lookup"] = {
  byReference: false,
  byMetadata: false,
  many: false,
  minIntervalMs: 0,
  documented: false,
  consistencyLagMs: 0,
  note: "Has no lookup of any kind.",
};

const nothing: ActionCapability = {
  supported: false,
  idempotency: { kind: "none", note: "Reads no key." },
  lookup: noLookup,
  webhookEvidence: false,
  quiescenceMs: 90_000,
  deadlineMs: 30_000,
  answerIsAuthoritative: false,
  assumed: false,
  reference: { source: "none: an adapter of the tests, against the simulator", checkedOn: "2026-12-01" },
};

/** The records of a provider that can do the least, with the answers of its table in words. */
export function bareCapabilities(answers: Dialect["answers"]): Record<Action, ActionCapability> {
  return {
    SEND: { ...nothing, supported: true, answers: answersInWords(answers.SEND) },
    VOID: {
      ...nothing,
      supported: true,
      idempotency: { kind: "natural", repeatAnswer: "409 invalid_state", note: "A repeat changes nothing." },
      // Its 2xx is the record of the target, in status "withdrawn".
      answerIsAuthoritative: true,
      answers: answersInWords(answers.VOID),
    },
    RESEND: {
      ...nothing,
      supported: true,
      idempotency: { kind: "none", note: "Reads no key; every accepted call sends another mail." },
      answers: answersInWords(answers.RESEND),
    },
    FINALIZE: nothing,
  };
}

const onTarget: readonly AnswerRow[] = [...answerRows.everywhere, ...answerRows.target([])];

/** What the simulator's plainest calls refuse with. */
export const bareAnswers: Dialect["answers"] = {
  SEND: [...answerRows.everywhere, ...answerRows.content],
  VOID: onTarget,
  RESEND: onTarget,
};

/**
 * The poorest provider: no key, no lookup, no webhook. An attempt in doubt can never be proven either way. SEND, VOID
 * (whose answer is the record of the target) and RESEND.
 */
export class BareProvider extends DialectProvider {
  constructor(transport: HttpTransport) {
    super(transport, { name: "bare", capabilities: bareCapabilities(bareAnswers), answers: bareAnswers });
  }
}
