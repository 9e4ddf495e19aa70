import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  label: string;
  color: string;
  values: (number | null)[];
}

/** Lines over time. @param times seconds since the epoch */
export function Chart({
  title,
  times,
  series,
  unit,
}: {
  title: string;
  times: number[];
  series: Series[];
  unit: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const ink = getComputedStyle(element).getPropertyValue("--dim");
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" } };
    const plot = new uPlot(
      {
        title,
        width: element.clientWidth,
        height: 220,
        series: [{}, ...series.map(({ label, color }) => ({ label, stroke: color, width: 2 }))],
        axes: [
          axis,
          { ...axis, size: 60, values: (_plot: uPlot, ticks: number[]) => ticks.map((tick) => `${tick} ${unit}`) },
        ],
      },
      [times, ...series.map(({ values }) => values)],
      element,
    );
    return () => plot.destroy();
  }, [title, times, series, unit]);
  return <div className="card" ref={box} role="img" aria-label={title} />;
}
