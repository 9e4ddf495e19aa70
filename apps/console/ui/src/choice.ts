import type { OpenDecision } from "@countersign/client";

/** A decision as it was read, and the evidence that it was read with. */
export interface Choice {
  decision: OpenDecision;
  evidenceNo: number;
}

/** Names a decision among those that one ticket leaves open. */
export const decisionKey = ({ decision, reference }: Pick<OpenDecision, "decision" | "reference">): string =>
  `${decision} ${reference ?? ""}`;

/**
 * Whether a choice still says what was read when it was made. The page asks again while somebody thinks: what came in
 * meanwhile may change what a decision does, and then it has to be chosen anew.
 */
export function stillStands(choice: Choice, now: { evidenceNo: number; decisions: readonly OpenDecision[] }): boolean {
  const same = now.decisions.find((each) => decisionKey(each) === decisionKey(choice.decision));
  return choice.evidenceNo === now.evidenceNo && same !== undefined && effectOf(same) === effectOf(choice.decision);
}

const effectOf = ({ voids, leftAlone, dependants }: OpenDecision): string =>
  JSON.stringify([[...voids].sort(), [...leftAlone].sort(), [...dependants].sort()]);
