import type { Action } from "@countersign/runtime";
import type { HttpTransport } from "../http-call.js";
import type { ActionCapability } from "../port.js";
import { answerRows } from "../wesign/answers.js";
import { bareAnswers, bareCapabilities } from "./bare.js";
import { type Dialect, DialectProvider } from "./dialect-provider.js";

const answers: Dialect["answers"] = { ...bareAnswers, SEND: [...bareAnswers.SEND, ...answerRows.keyed] };

function capabilities(): Record<Action, ActionCapability> {
  const bare = bareCapabilities(answers);
  return {
    ...bare,
    SEND: {
      ...bare.SEND,
      idempotency: {
        kind: "keyed",
        header: "Idempotency-Key",
        scope: "workspace",
        retentionMs: 24 * 60 * 60 * 1000,
        staleLockMs: 60_000,
        changedBody: "422 idempotency_key_reuse",
        replaySafe: true,
        note: "Errors roll back, key and request commit together: true of the simulator but for 5xx-after-commit, crash-after-commit and a lock taken over from a slow call.",
      },
    },
  };
}

/**
 * A provider whose key makes a replay safe, and which has no lookup and no webhook: sending the same key and bytes again
 * is the only way to learn what became of an attempt.
 */
export class SafeKeyProvider extends DialectProvider {
  constructor(transport: HttpTransport) {
    super(transport, { name: "safe-key", capabilities: capabilities(), answers });
  }
}
