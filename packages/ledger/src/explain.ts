import type { HistoryLine, OperationView } from "./read.js";
import { toIso } from "./read.js";
import { type Sent, sent } from "./sent.js";
import { isFinal } from "./state.js";

/** The answer in plain sentences, in the order in which somebody at 3 a.m. asks. Holds ids, codes and times only. */
export interface Explanation {
  sent: Sent;
  /** Did it go out or not? */
  answer: string;
  /** How do we know? One sentence per piece of evidence. */
  because: string[];
  /** What happens next? */
  next: string;
  /** When somebody looks next; null where nobody needs to. */
  nextLookAt: string | null;
}

const what: Record<OperationView["action"], string> = {
  SEND: "signature request",
  VOID: "void",
  RESEND: "reminder",
  FINALIZE: "finalization",
};

function answerSentence(operation: OperationView, verdict: Sent): string {
  const noun = what[operation.action];
  if (operation.state === "CONFIRMED" && operation.cause === "already-over") {
    return "Yes, the target is void, but not by this operation: it was over already and nothing more was sent.";
  }
  if (verdict === "yes") return `Yes, this ${noun} went out: the provider has it.`;
  if (verdict === "unknown" && operation.basis !== null && operation.basis !== "proof") {
    return `Nobody can prove it: this ${noun} was taken as done by a ${operation.basis}, not proven.`;
  }
  if (verdict === "unknown")
    return `Not known yet: this ${noun} may have gone out. It is not sent again until that is settled.`;
  return `No, this ${noun} has not gone out.`;
}

const historyWords: Record<string, string> = {
  planned: "recorded before anything was sent",
  claimed: "a worker took it and called the provider",
  accepted: "the provider answered with its reference",
  "lease-expired": "the worker's lease ran out without a result, which proves nothing",
  "absence-proven": "the provider was asked and has no such request, often enough and late enough to count as proof",
  "every-attempt-closed": "every attempt was declined, refused or never left this house",
  "found-by-lookup": "a lookup by our own id found exactly one request",
  "found-by-reference": "a lookup by the stored reference found the request",
  "evidence-by-webhook": "a verified webhook carried our own id",
  "event-with-our-metadata": "a verified webhook carried our own id",
  "late-answer": "an answer came after the lease had ended and was kept as evidence",
  "absence-counted": "a lookup found nothing; that counts, but not enough of them yet",
  "absence-not-proven": "a lookup found nothing, but too early to prove absence",
  "lookup-failed": "a lookup failed, which proves nothing",
  refused: "the provider definitively refused this payload",
  amended: "it was replaced by a newer operation",
  "voided-before-sent": "it was voided before it was sent",
  "target-never-existed": "what it acts on never existed",
  "target-confirmed": "what it acts on is confirmed, so it may go out",
  "void-confirmed": "the older request is void, so it may go out",
  "target-is-void": "a lookup shows that the target is void",
};

function evidenceSentence(line: HistoryLine): string {
  const words = historyWords[line.reason] ?? line.reason.replaceAll("-", " ");
  const attempt = line.attemptNo > 0 ? `, attempt ${line.attemptNo}` : "";
  return `${toIso(line.at)} ${line.toState ?? line.kind}${attempt}: ${words} (${line.reason}, by ${line.actor}).`;
}

function nextSentence(operation: OperationView): string {
  switch (operation.state) {
    case "PLANNED":
      if (operation.openDependencies > 0)
        return `It waits for ${operation.openDependencies} other operation(s) to end first.`;
      return operation.attemptNo === 0
        ? "A submit worker will send it."
        : "It is sent again, with the same key and bytes.";
    case "IN_FLIGHT":
      return "A worker is calling the provider now; if it dies, the lease runs out and the outcome is looked up.";
    case "UNKNOWN":
      return "The provider is asked what exists; nothing is sent until there is evidence.";
    case "RECONCILING":
      return "The provider is being asked right now.";
    case "NEEDS_REVIEW":
      return "A person has to decide: see the operation's ticket for its owner.";
    default:
      return operation.supersededBy === null
        ? "Nothing: it is final."
        : `Nothing here: operation ${operation.supersededBy} has replaced it.`;
  }
}

/** Pure: the explanation of an operation from its row and history. */
export function explain(operation: OperationView, history: readonly HistoryLine[]): Explanation {
  const verdict = sent(operation);
  return {
    sent: verdict,
    answer: answerSentence(operation, verdict),
    because: history.map(evidenceSentence),
    next: nextSentence(operation),
    nextLookAt: operation.dueAt === null || isFinal(operation.state) ? null : toIso(operation.dueAt),
  };
}

/** One sentence fit for the person who clicked: no ids, no jargon. */
export function userMessage(operation: OperationView): string {
  const verdict = sent(operation);
  if (operation.state === "SUPERSEDED") return "This request was replaced or withdrawn before it took effect.";
  if (operation.state === "TERMINAL_FAILED")
    return "The signature provider refused this request. Correct it and send it as a new one.";
  if (operation.state === "NEEDS_REVIEW") return "We are checking this request by hand. Please do not send it again.";
  if (verdict === "yes") return operation.action === "SEND" ? "The request has been sent." : "Done.";
  if (operation.state === "PLANNED" || verdict === "no") return "The request is recorded and will be sent.";
  return "We are checking whether the request went out. Please do not send it again.";
}
