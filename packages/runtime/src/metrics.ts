import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What every metric declares: its full name, what a reader should know, and its fixed label names. */
export interface MetricOptions<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly Label[];
}

export interface HistogramOptions<Label extends string> extends MetricOptions<Label> {
  /** Upper bounds in the metric's own unit; seconds from 5 ms to 60 s when left out. */
  readonly buckets?: readonly number[];
}

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** One process's metrics, in a registry of its own. */
export interface Metrics {
  readonly registry: Registry;
  counter<Label extends string = never>(options: MetricOptions<Label>): Counter<Label>;
  gauge<Label extends string = never>(
    options: MetricOptions<Label> & { collect?: () => void | Promise<void> },
  ): Gauge<Label>;
  histogram<Label extends string = never>(options: HistogramOptions<Label>): Histogram<Label>;
  /** The exposition text for `/metrics`, with its content type. */
  render(): Promise<{ contentType: string; body: string }>;
}

/**
 * A registry labelled `process=<name>`. Label values must come from closed sets (states, outcomes, queues), never from
 * input: they would grow without bound and could carry something personal.
 * @param options.runtime also collect Node's own metrics (memory, event loop lag, garbage collection)
 */
export function createMetrics(name: string, options: { runtime?: boolean } = {}): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: name });
  if (options.runtime ?? false) collectDefaultMetrics({ register: registry });
  return {
    registry,
    counter: ({ name: metric, help, labels = [] }) =>
      new Counter({ name: metric, help, labelNames: [...labels], registers: [registry] }),
    gauge: ({ name: metric, help, labels = [], collect }) =>
      new Gauge({
        name: metric,
        help,
        labelNames: [...labels],
        registers: [registry],
        ...(collect === undefined ? {} : { collect }),
      }),
    histogram: ({ name: metric, help, labels = [], buckets = secondsBuckets }) =>
      new Histogram({ name: metric, help, labelNames: [...labels], buckets: [...buckets], registers: [registry] }),
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}
