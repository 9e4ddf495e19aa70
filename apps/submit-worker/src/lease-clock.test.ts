import { expect, it } from "vitest";
import { LeaseClock } from "./lease-clock.js";

function clockAt(leaseMs: number, marginMs: number) {
  const time = { monotonic: 1_000, wall: 1_700_000_000_000 };
  const clocks = { monotonic: () => time.monotonic, wall: () => time.wall };
  const clock = new LeaseClock({ leaseMs, marginMs, clocks });
  return {
    clock,
    pass: (monotonic: number, wall = monotonic) => {
      time.monotonic += monotonic;
      time.wall += wall;
    },
  };
}

it("the first byte needs room for the whole deadline and the margin inside the lease", () => {
  const { clock, pass } = clockAt(1_000, 100);
  pass(600);
  expect(clock.mayWrite(300)).toBe(true);
  const late = clockAt(1_000, 100);
  late.pass(601);
  expect(late.clock.mayWrite(300)).toBe(false);
});

it("counts by the larger clock: a suspended machine stops one, a jump moves the other", () => {
  const suspended = clockAt(1_000, 100);
  suspended.pass(10, 5_000);
  expect(suspended.clock.mayWrite(300)).toBe(false);
  const jumpedBack = clockAt(1_000, 100);
  jumpedBack.pass(5_000, -60_000);
  expect(jumpedBack.clock.mayWrite(300)).toBe(false);
});

it("later bytes must lie inside the deadline that the first one began", () => {
  const { clock, pass } = clockAt(10_000, 100);
  expect(clock.mayWrite(300)).toBe(true);
  pass(299);
  expect(clock.mayWrite(300)).toBe(true);
  pass(2);
  expect(clock.mayWrite(300)).toBe(false);
});
