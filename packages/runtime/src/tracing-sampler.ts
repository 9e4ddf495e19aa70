import { type Context, isSpanContextValid, trace } from "@opentelemetry/api";
import {
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-node";
import type { SpanName } from "./tracing.js";

const own: ReadonlySet<string> = new Set([
  "plan",
  "submit",
  "provider.call",
  "reconcile",
  "provider.lookup",
  "webhook.receive",
  "webhook.apply",
] satisfies SpanName[]);

/** The queue's spans about a job; its others are housekeeping, also of an idle process. */
const aboutJobs = /^(process|addBulk) /;

/**
 * Keeps or drops a trace as a whole, by its id alone, so that all processes decide alike. Of the queue's spans those about a
 * job stay, where they belong to a row's trace.
 */
export class StorySampler implements Sampler {
  readonly #byTraceId: TraceIdRatioBasedSampler;

  /** @param ratio share of the traces that is kept, 0 to 1 */
  constructor(ratio: number) {
    this.#byTraceId = new TraceIdRatioBasedSampler(ratio);
  }

  shouldSample(context: Context, traceId: string, name: string): SamplingResult {
    const parent = trace.getSpanContext(context);
    const belongs = parent !== undefined && isSpanContextValid(parent);
    if (!own.has(name) && !(aboutJobs.test(name) && belongs)) return { decision: SamplingDecision.NOT_RECORD };
    return this.#byTraceId.shouldSample(context, traceId);
  }

  toString(): string {
    return "StorySampler";
  }
}

/** The share that `OTEL_TRACES_SAMPLER` and its `_ARG` ask for; all where they don't. */
export function sampledShare(env: Readonly<Record<string, string | undefined>>): number {
  const sampler = env.OTEL_TRACES_SAMPLER ?? "";
  if (sampler.endsWith("always_off")) return 0;
  if (!sampler.endsWith("traceidratio")) return 1;
  const share = Number.parseFloat(env.OTEL_TRACES_SAMPLER_ARG ?? "");
  return share >= 0 && share <= 1 ? share : 1;
}
