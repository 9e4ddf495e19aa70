import type { OperationView } from "./read.js";

/** The one question: did that request go out or not? */
export type Sent = "yes" | "no" | "unknown";

type Known = Pick<
  OperationView,
  "state" | "basis" | "attemptNo" | "openAttempts" | "referencesSeen" | "signingStatuses" | "action"
>;

/**
 * Derived here and nowhere else (DESIGN §3). Yes: CONFIRMED with proof, or a reference in a status that means sent. No:
 * never attempted, or every attempt declined, refused, never sent or proven absent. Everything else is unknown, also what
 * a person or policy took as done.
 */
export function sent(operation: Known): Sent {
  // Staged only, or discarded after that: the provider had it, and nobody has been mailed.
  const mailed = operation.signingStatuses.some((status) => status !== "STAGED" && status !== "DISCARDED");
  const onlyStaged = operation.signingStatuses.length > 0 && !mailed;
  if (operation.state === "CONFIRMED" && operation.action === "SEND" && onlyStaged) return "no";
  if (operation.state === "CONFIRMED" && operation.basis === "proof") return "yes";
  // The provider's own word counts, whoever decided which of its requests stays.
  if (operation.action === "SEND" && mailed) return "yes";
  if (operation.state === "CONFIRMED") return "unknown";
  if (operation.attemptNo === 0 && operation.referencesSeen === 0) return "no";
  if (operation.openAttempts === 0 && operation.referencesSeen === 0 && operation.state !== "IN_FLIGHT") return "no";
  return "unknown";
}
