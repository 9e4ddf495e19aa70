import type { NearMiss } from "./near-miss.js";
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
  if (verdict === "yes" && operation.action === "FINALIZE") return "Yes, the sealed document is in the archive.";
  if (verdict === "yes") return `Yes, this ${noun} went out: the provider has it.`;
  if (verdict === "unknown" && operation.state === "CONFIRMED" && operation.basis !== "proof") {
    return `Nobody can prove it: this ${noun} was taken as done by a ${operation.basis}, not proven.`;
  }
  if (verdict === "unknown" && operation.state === "NEEDS_REVIEW" && operation.reason === "unprovable") {
    return `Nobody can know: this ${noun} may have gone out, and the provider offers nothing to ask. A person has to decide.`;
  }
  if (verdict === "unknown" && operation.action === "VOID" && operation.state === "NEEDS_REVIEW") {
    return `Not settled: this void was asked for, and its target says otherwise (${operation.reason}). A person has to decide.`;
  }
  if (verdict === "unknown" && operation.state === "SUPERSEDED") {
    return `Nobody can know: this ${noun} was given up although it may have gone out. It goes on being looked for.`;
  }
  if (verdict === "unknown")
    return `Not known yet: this ${noun} may have gone out. It is not sent again until that is settled.`;
  if (operation.action === "FINALIZE") return "No, the sealed document is not in the archive.";
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
  "target-is-discarded": "a lookup shows that the staged document is discarded",
  "target-expired": "a lookup shows that the target had expired: nothing more is needed",
  "target-completed": "the target is completed, which contradicts this operation",
  "target-declined": "a signer declined the target, which contradicts this operation",
  "target-not-complete": "the target is not completed yet",
  "worker-died": "the worker that called the provider died without a result, which proves nothing",
  "found-by-audit": "an audit look after the end found another request",
  "nothing-new": "an audit look after the end found nothing that was not known",
  "as-said": "an audit look after the end found the target as this says",
  unprovable: "nothing at this provider can prove it either way",
  "lookup-not-verified":
    "a lookup found nothing, but lookups on this connection have not been verified, so that proves nothing",
  "lookup-retention-passed": "a lookup found nothing, but is older than what the provider's lookup still shows",
  "more-than-one-match": "more than one request of ours exists",
  "draft-continued": "a draft of ours exists and nobody has been mailed: its second step follows",
  "found-staged-as-asked": "the document is staged, as was asked",
  "replay-safe": "the same bytes go out again under the same key, which this provider documents as safe",
  "replay-by-policy": "the same bytes go out again under the same key; a written policy accepts the risk",
  "kept-by-review": "a decision kept one reference",
  "abandoned-by-review": "a decision gave it up",
  ambiguous: "the call ended without a usable answer, which proves nothing",
  queued: "the provider took it without having done it yet",
  declined: "the provider declined it for now; nothing was made",
  "not-sent": "no byte left this house",
  "not-yet": "what it acts on is not completed yet; nothing was changed",
  conflict: "the provider holds something that contradicts it",
  looking: "the provider is asked what exists",
  "accepted-not-yet-seen": "the provider accepted it, and its target is looked at before that counts",
  "connection-closed": "its connection is paused or down, so nobody asked",
  "poll-budget": "the provider may not be asked about it so often",
  "newer-evidence": "newer evidence arrived, so it is looked at again",
  "reference-not-visible-yet": "its reference is not visible yet, inside the time that the provider may take",
  "reference-not-found": "the provider gave a reference and now knows no such request",
  "absence-proof-aged": "the proof of absence has grown old and is taken again",
  "replay-refused": "the same bytes under the same key were refused: the key proves that nothing was made",
  "void-refused": "the provider refused the void",
  "near-miss": "the worker came too late and sent nothing",
  released: "what it waited for has ended",
  "duplicate-requested": "the same approval was asked for again by somebody else",
};

const nearMissWords: Record<NearMiss["kind"], string> = {
  "woke-after-lease": "a worker woke after its lease and sent nothing",
  "claim-lost": "a second worker came for it while one was calling, and sent nothing",
  "claim-gone": "a worker found its claim gone before the first byte, and sent nothing",
  "stale-verdict": "a verdict was refused because newer evidence had arrived",
};

function evidenceSentence(line: HistoryLine): string {
  const words = historyWords[line.reason] ?? line.reason.replaceAll("-", " ");
  const attempt = line.attemptNo > 0 ? `, attempt ${line.attemptNo}` : "";
  const { why } = line.evidence ?? {};
  const said = typeof why === "string" ? ` Reason given: ${why}.` : "";
  return `${toIso(line.at)} ${line.toState ?? line.kind}${attempt}: ${words} (${line.reason}, by ${line.actor}).${said}`;
}

const nearMissSentence = (miss: NearMiss): string =>
  `${toIso(miss.at)} near miss, attempt ${miss.attemptNo}: ${nearMissWords[miss.kind]} (${miss.kind}, by ${miss.actor}).`;

const heldUp: Record<NonNullable<OperationView["heldUpBy"]>, string> = {
  hold: "A hold keeps it from being sent: see countersign holds.",
  pause: "Its connection is paused: see countersign connection list.",
  "provider-down": "The provider is down: only a probe calls it until it answers again.",
};

function nextSentence(operation: OperationView): string {
  if (operation.heldUpBy !== null && operation.openDependencies === 0) return heldUp[operation.heldUpBy];
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
      if (operation.action === "FINALIZE")
        return "The request is read again; once it is completed its document is archived.";
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

/** Pure: the explanation of an operation from its row, its history and its near misses. */
export function explain(
  operation: OperationView,
  history: readonly HistoryLine[],
  nearMisses: readonly NearMiss[] = [],
): Explanation {
  const verdict = sent(operation);
  const told = [
    ...history.map((line) => ({ at: line.at, sentence: evidenceSentence(line) })),
    ...nearMisses.map((miss) => ({ at: miss.at, sentence: nearMissSentence(miss) })),
  ];
  // PostgreSQL's text sorts by time; the history's own order decides between equal moments.
  if (nearMisses.length > 0) told.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return {
    sent: verdict,
    answer: answerSentence(operation, verdict),
    because: told.map((each) => each.sentence),
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
  if (operation.state === "CONFIRMED" && verdict === "unknown")
    return "This was taken as done; nobody can prove that it went out.";
  if (operation.state === "PLANNED" || verdict === "no") return "The request is recorded and will be sent.";
  return "We are checking whether the request went out. Please do not send it again.";
}
