import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "../minutes.js";
import { spoken } from "../words.js";

/** A state has the same colour in every chart, whichever others there are. */
const colors: Record<string, string> = {
  PLANNED: "#3277d5",
  IN_FLIGHT: "#8455c0",
  UNKNOWN: "#c07a00",
  RECONCILING: "#0f8b8d",
  NEEDS_REVIEW: "#d0489b",
  CONFIRMED: "#1b8a4b",
  TERMINAL_FAILED: "#c33c34",
  SUPERSEDED: "#5f6b78",
};

/** Lines over time. @param times seconds since the epoch */
export function Chart(props: { title: string; times: number[]; series: readonly Series[]; unit: string }) {
  const { title, times, series, unit } = props;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const width = (): number => element.clientWidth - 24;
    const plot = new uPlot(
      {
        title,
        width: width(),
        height: 220,
        series: [
          {},
          ...series.map(({ label }) => ({ label: spoken(label), stroke: colors[label] ?? "#888", width: 2 })),
        ],
        axes: axes(getComputedStyle(element).getPropertyValue("--dim"), unit),
      },
      [times, ...series.map(({ values }) => values)],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: width(), height: 220 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [title, times, series, unit]);
  return <div className="card chart" ref={box} role="img" aria-label={`${title}: ${inWords(series, unit)}`} />;
}

function axes(ink: string, unit: string): uPlot.Axis[] {
  const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" } };
  const values = (_plot: uPlot, ticks: number[]): string[] => ticks.map((tick) => `${tick} ${unit}`.trim());
  return [axis, { ...axis, size: 60, values }];
}

/** For who cannot see it: the largest value of each line. */
function inWords(series: readonly Series[], unit: string): string {
  const largest = (values: Series["values"]): number => Math.max(0, ...values.map((value) => value ?? 0));
  return series.map(({ label, values }) => `${spoken(label)} at most ${largest(values)} ${unit}`.trim()).join(", ");
}
