import { expect, it } from "vitest";
import { age, consequences, moment, timeline } from "./words.js";

it("ages are said in the unit that fits", () => {
  expect([5, 89, 90, 5_399, 5_400, 172_800].map(age)).toEqual(["5 s", "89 s", "2 min", "90 min", "2 h", "2 days"]);
  expect([moment(null), moment("2026-11-30T21:00:00.123456Z")]).toEqual(["–", "2026-11-30 21:00:00 UTC"]);
});

it("a decision names every VOID that it would plan", () => {
  const keep = { decision: "keep", reference: "wsr_1", voids: ["wsr_2"], leftAlone: ["wsr_3"] } as const;
  expect(consequences({ ...keep, voids: [...keep.voids], leftAlone: [...keep.leftAlone] })).toEqual([
    "wsr_1 is kept: the operation is confirmed with it.",
    "1 VOID will be planned, for wsr_2.",
    "wsr_3: over already, left alone.",
  ]);
  const abandon = consequences({ decision: "abandon", reference: null, voids: ["a", "b"], leftAlone: [] });
  expect(abandon[1]).toBe("2 VOIDs will be planned, for a, b.");
});

it("history, events and guards stand in one order", () => {
  const line = { kind: "moved", from: null, to: "PLANNED", reason: "planned", actor: "producer", attempt: 0 };
  const event = { type: "signing_request.sent", reference: "r", status: "APPLIED", reason: null };
  const all = timeline(
    [
      { ...line, at: "2026-01-01T00:00:03Z", from: "PLANNED", to: "IN_FLIGHT", attempt: 1 },
      { ...line, at: "2026-01-01T00:00:01Z" },
    ],
    [{ ...event, receivedAt: "2026-01-01T00:00:02Z" }],
    [{ at: "2026-01-01T00:00:04Z", kind: "claim-lost", attempt: 1 }],
  );
  expect(all.map(({ what }) => what)).toEqual([
    "new → PLANNED",
    "webhook signing_request.sent",
    "PLANNED → IN_FLIGHT",
    "a guard worked",
  ]);
});

it("moments are ordered to the microsecond, however many digits they come with", () => {
  const miss = { kind: "claim-lost", attempt: 1 };
  const event = { type: null, reference: null, status: "DEAD", reason: null };
  const all = timeline(
    [],
    [
      { ...event, receivedAt: "2026-01-01T00:00:01.5Z" },
      { ...event, receivedAt: "2026-01-01T00:00:01.123456Z" },
    ],
    [
      { ...miss, at: "2026-01-01T00:00:01Z" },
      { ...miss, at: "2026-01-01T00:00:01.123Z" },
    ],
  );
  expect(all.map(({ at }) => at.slice(17))).toEqual(["01Z", "01.123Z", "01.123456Z", "01.5Z"]);
});
