import { isOver, isUnsent, type StoredReference } from "@countersign/ledger";
import type { OpenDecision } from "./schema.js";

/** What decisions are about: an operation in review, or one with a duplicate ticket. */
export interface Decidable {
  ticketKind: string;
  action: "SEND" | "VOID" | "RESEND" | "FINALIZE";
  state: string;
  references: readonly StoredReference[];
  /** How many operations wait for it. */
  waiting: number;
}

/**
 * Pure: the decisions that a ticket leaves open, each with what it would do, as far as the references known now tell. Empty
 * where nothing is to be decided.
 */
export function openDecisions(about: Decidable): OpenDecision[] {
  if (about.ticketKind === "duplicate") {
    return [...about.references.map((known) => keep(about, known)), giveUp(about, [])];
  }
  if (about.ticketKind !== "needs-review" || about.state !== "NEEDS_REVIEW") return [];
  if (about.action === "SEND") {
    const keepable = about.references.filter((known) => !isUnsent(known));
    return [...keepable.map((known) => keep(about, known)), giveUp(about, [])];
  }
  const words = about.action === "VOID" ? (["release", "retire", "retry"] as const) : (["release", "retire"] as const);
  return [
    { decision: "keep", reference: null, voids: [], leftAlone: [], dependants: [] },
    giveUp(about, about.waiting > 0 ? [...words] : []),
  ];
}

function keep(about: Decidable, kept: StoredReference): OpenDecision {
  const others = about.references.filter((known) => known.providerRef !== kept.providerRef);
  return { decision: "keep", reference: kept.providerRef, ...split(others), dependants: [] };
}

function giveUp(about: Decidable, dependants: OpenDecision["dependants"]): OpenDecision {
  const own = about.action === "SEND" ? about.references : [];
  return { decision: "abandon", reference: null, ...split(own), dependants };
}

/** What is over at the provider needs no VOID, and what is completed never gets one. */
function split(references: readonly StoredReference[]): Pick<OpenDecision, "voids" | "leftAlone"> {
  const names = (over: boolean): string[] =>
    references.filter((known) => isOver(known) === over).map(({ providerRef }) => providerRef);
  return { voids: names(false), leftAlone: names(true) };
}
