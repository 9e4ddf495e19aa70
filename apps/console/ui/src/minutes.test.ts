import { expect, it } from "vitest";
import { lastHour } from "./minutes.js";

const move = { action: "SEND", from: "IN_FLIGHT", to: "CONFIRMED", count: 1, msMean: 100, msMax: 100 };
const at = "2026-01-01T01:00:30.000Z";

it("an hour has sixty minutes, the last one the answer's own", () => {
  const { times } = lastHour(at, []);
  expect([times.length, times[0], times.at(-1)].map(Number)).toEqual([
    60,
    Date.parse("2026-01-01T00:01:00Z") / 1_000,
    Date.parse("2026-01-01T01:00:00Z") / 1_000,
  ]);
});

it("a minute in which nothing moved counts zero, and has no latency", () => {
  const { moves, latency } = lastHour(at, [
    { ...move, minute: "2026-01-01T00:58:00Z" },
    { ...move, minute: "2026-01-01T01:00:00Z" },
  ]);
  expect(moves).toMatchObject([{ label: "CONFIRMED" }]);
  expect(moves[0]?.values.slice(-3)).toEqual([1, 0, 1]);
  expect(latency[0]?.values.slice(-3)).toEqual([100, null, 100]);
});

it("actions are added up, and a mean weighs by calls; what made no call has no latency", () => {
  const minute = "2026-01-01T01:00:00Z";
  const { moves, latency } = lastHour(at, [
    { ...move, minute, count: 3 },
    { ...move, minute, action: "VOID", count: 1, msMean: 500 },
    { ...move, minute, from: "RECONCILING", count: 5, msMean: 0 },
  ]);
  expect(moves[0]?.values.at(-1)).toBe(9);
  expect(latency[0]?.values.at(-1)).toBe(200);
});
