import type { Action } from "@countersign/runtime";
import type { AnswerRow } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type { ActionCapability } from "../port.js";
import { answerRows } from "../wesign/answers.js";
import { bareCapabilities } from "./bare.js";
import { type Dialect, DialectProvider } from "./dialect-provider.js";

/** 404 is no "not found", 408 no time-out; 429 has no meaning and stays ambiguous. */
const odd: readonly AnswerRow[] = [
  { status: 404, code: "address_mismatch", verdict: { kind: "refused" } },
  { status: 408, code: "daily_limit", verdict: { kind: "declined", reason: "quota" } },
];

const onTarget: readonly AnswerRow[] = [...odd, ...answerRows.target([])];
const answers: Dialect["answers"] = { SEND: [...odd, ...answerRows.content], VOID: onTarget, RESEND: onTarget };

const byReferenceOnly = (capability: ActionCapability): ActionCapability => ({
  ...capability,
  lookup: {
    ...capability.lookup,
    byReference: true,
    documented: true,
    note: "GET of a request by its reference; there is no list.",
  },
});

function capabilities(): Record<Action, ActionCapability> {
  const bare = bareCapabilities(answers);
  return { ...bare, SEND: byReferenceOnly(bare.SEND), VOID: byReferenceOnly(bare.VOID) };
}

/**
 * A provider whose status codes mean other things: 404 `address_mismatch` refuses, 408 `daily_limit` is a quota. No key,
 * no webhook; a request can be read by its reference only.
 */
export class OddCodesProvider extends DialectProvider {
  constructor(transport: HttpTransport) {
    super(transport, { name: "odd-codes", capabilities: capabilities(), answers });
  }
}
