import { describe, expect, it } from "vitest";
import { backoffMs } from "./backoff.js";

describe("backoffMs", () => {
  const options = { baseMs: 2_000, maxMs: 300_000 };
  it.each([
    // attempt, random, wait
    [1, 0, 0],
    [1, 0.5, 1_000],
    [2, 0.5, 2_000],
    [5, 0.999999, 31_999],
    [9, 0.5, 150_000],
    [10_000, 0.5, 150_000],
    [0, 0.5, 1_000],
    [-3, 0.5, 1_000],
  ])("waits for attempt %d at random %d: %d ms", (attempt, random, wait) => {
    expect(backoffMs(attempt, options, () => random)).toBe(wait);
  });
});
