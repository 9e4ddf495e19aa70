import { describe, expect, it } from "vitest";
import { type Decidable, openDecisions } from "./open-decisions.js";

const known = (providerRef: string, status: string | null = "SENT", role = "evidence") => ({
  providerRef,
  role,
  status,
});
const about = (change: Partial<Decidable>): Decidable => ({
  ticketKind: "needs-review",
  action: "SEND",
  state: "NEEDS_REVIEW",
  references: [],
  waiting: 0,
  ...change,
});
/** `keep a: void b; leave c`, as one line per decision. */
const told = (change: Partial<Decidable>): string[] =>
  openDecisions(about(change)).map(
    ({ decision, reference, voids, leftAlone, dependants }) =>
      `${decision} ${reference ?? "-"} | void ${voids.join(",") || "-"} | leave ${leftAlone.join(",") || "-"} | ${dependants.join(",") || "-"}`,
  );

describe("what a ticket leaves open", () => {
  it("a SEND: keep any reference that was mailed, or none; what is over gets no VOID", () => {
    const references = [known("a"), known("b", "COMPLETED"), known("c", "STAGED", "draft"), known("d", null, "draft")];
    expect(told({ references })).toEqual([
      "keep a | void c,d | leave b | -",
      "keep b | void a,c,d | leave - | -",
      "abandon - | void a,c,d | leave b | -",
    ]);
  });

  it("an unprovable SEND: only abandoning, and nothing to void", () => {
    expect(told({})).toEqual(["abandon - | void - | leave - | -"]);
  });

  it("a VOID that something waits for: what becomes of them has to be said", () => {
    expect(told({ action: "VOID", waiting: 2 })).toEqual([
      "keep - | void - | leave - | -",
      "abandon - | void - | leave - | release,retire,retry",
    ]);
    expect(told({ action: "RESEND", waiting: 1 })[1]).toContain("release,retire");
    expect(told({ action: "VOID" })[1]).toBe("abandon - | void - | leave - | -");
  });

  it("a duplicate: either reference, or none, whatever the operation's state", () => {
    expect(told({ ticketKind: "duplicate", state: "CONFIRMED", references: [known("a"), known("b")] })).toEqual([
      "keep a | void b | leave - | -",
      "keep b | void a | leave - | -",
      "abandon - | void a,b | leave - | -",
    ]);
  });

  it("nothing for other kinds, and nothing once the operation has moved on", () => {
    expect(told({ ticketKind: "aged", state: "UNKNOWN", references: [known("a")] })).toEqual([]);
    expect(told({ state: "CONFIRMED", references: [known("a")] })).toEqual([]);
  });
});
