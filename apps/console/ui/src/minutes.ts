import type { Overview } from "../../src/contract.js";

type Minute = Overview["minutes"][number];

export interface Series {
  label: string;
  values: (number | null)[];
}

/** What the charts of the last hour show, over the same times. */
export interface LastHour {
  /** Seconds since the epoch, one per minute. */
  times: number[];
  /** Moves per minute by the state reached: 0 where nothing moved. */
  moves: Series[];
  /** Mean of provider calls in milliseconds by the state reached: null where none was made. */
  latency: Series[];
}

/** Minutes without any move are left out of the answer: here they stand again, so that a stop looks like one. @param at of the answer */
export function lastHour(at: string, minutes: readonly Minute[]): LastHour {
  const end = Math.floor(Date.parse(at) / 60_000);
  const times = Array.from({ length: 60 }, (_, index) => (end - 59 + index) * 60);
  const calls = minutes.filter(({ from }) => from === "IN_FLIGHT");
  return {
    times,
    moves: series(times, minutes, total),
    latency: series(times, calls, (of) => (total(of) === 0 ? null : Math.round(weighted(of) / total(of)))),
  };
}

const total = (of: readonly Minute[]): number => of.reduce((sum, { count }) => sum + count, 0);
const weighted = (of: readonly Minute[]): number => of.reduce((sum, { msMean, count }) => sum + msMean * count, 0);

function series(
  times: readonly number[],
  minutes: readonly Minute[],
  value: (of: readonly Minute[]) => number | null,
): Series[] {
  const states = [...new Set(minutes.map(({ to }) => to))].sort();
  return states.map((label) => {
    const own = minutes.filter(({ to }) => to === label);
    const at = (time: number): Minute[] =>
      own.filter(({ minute }) => Math.floor(Date.parse(minute) / 60_000) * 60 === time);
    return { label, values: times.map((time) => value(at(time))) };
  });
}
