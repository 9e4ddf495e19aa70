import { describe, expect, it } from "vitest";
import { layOut } from "./deal.js";
import { spread } from "./drive.js";

describe("a demo's layout", () => {
  it.each([
    [200, 0.1, 20],
    [500, 0.5, 250],
    [30, 0.1, 3],
    [7, 0.1, 1],
    [1, 1, 1],
    [10, 0, 0],
  ])("of %i intents at rate %d deals exactly %i faults", (intents, rate, faults) => {
    expect(layOut(intents, rate).faults).toBe(faults);
  });

  it("always has room for its faults among the SENDs that will reach the provider", () => {
    const wrong: string[] = [];
    for (let intents = 1; intents <= 400; intents += 1) {
      for (let percent = 0; percent <= 100; percent += 1) {
        const deal = layOut(intents, percent / 100);
        const fits =
          deal.contracts + deal.amendments === intents &&
          deal.faults <= deal.among &&
          deal.among <= Math.max(1, intents - deal.voidsAtOnce) &&
          deal.amendments + deal.voids + deal.voidsAtOnce <= deal.contracts;
        if (!fits) wrong.push(`${intents} at ${percent} %`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("amends or voids about a tenth", () => {
    expect(layOut(200, 0.1)).toMatchObject({ contracts: 190, amendments: 10, voids: 8, voidsAtOnce: 2, bursts: true });
  });

  it("spreads without repeating", () => {
    expect(spread(10, 2)).toEqual([2, 7]);
    expect(new Set(spread(190, 50)).size).toBe(50);
    expect(spread(3, 5)).toHaveLength(3);
  });
});
