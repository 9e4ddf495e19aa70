import type { OpenDecision } from "@countersign/client";
import { expect, it } from "vitest";
import { stillStands } from "./choice.js";

const keep: OpenDecision = { decision: "keep", reference: "a", voids: ["b", "c"], leftAlone: [], dependants: [] };
const choice = { decision: keep, evidenceNo: 4 };

it("a choice stands while nothing of what was read changes, in whatever order it comes", () => {
  expect(stillStands(choice, { evidenceNo: 4, decisions: [{ ...keep, voids: ["c", "b"] }] })).toBe(true);
});

it.each([
  ["the evidence moved", 5, [keep]],
  ["one more request would get a VOID", 4, [{ ...keep, voids: ["b", "c", "d"] }]],
  ["a request is over and gets none", 4, [{ ...keep, voids: ["b"], leftAlone: ["c"] }]],
  ["somebody waits for it now", 4, [{ ...keep, dependants: ["release", "retire"] as const }]],
  ["it is no longer open", 4, [{ ...keep, reference: "b" }]],
])("a choice falls when %s", (_why, evidenceNo, decisions) => {
  expect(
    stillStands(choice, {
      evidenceNo,
      decisions: decisions.map((each) => ({ ...each, dependants: [...each.dependants] })),
    }),
  ).toBe(false);
});
