import type { Logger } from "./logger.js";
import { traceparentFor } from "./tracing-ids.js";
import { tracesWanted } from "./tracing-settings.js";

/** Every kind of span of ours; docs/traces.md says what each covers. */
export type SpanName =
  | "plan"
  | "submit"
  | "provider.call"
  | "reconcile"
  | "provider.lookup"
  | "webhook.receive"
  | "webhook.apply";

/** All that a span may say: ids, codes and numbers. Text that does not look like an identifier is dropped. */
export interface SpanFacts {
  readonly tenant?: string | undefined;
  readonly operation?: string | undefined;
  /** The webhook's row in the inbox. */
  readonly event?: string | undefined;
  readonly connection?: string | undefined;
  readonly action?: string | undefined;
  readonly attempt?: number | undefined;
  /** What it came to: an observation's or a lookup's kind, an answer's code. */
  readonly outcome?: string | undefined;
  readonly state?: string | undefined;
  readonly verdict?: string | undefined;
  readonly reason?: string | undefined;
  /** Along which path a lookup asked. */
  readonly kind?: string | undefined;
  /** HTTP status of the provider's answer. */
  readonly status?: number | undefined;
  readonly ms?: number | undefined;
  readonly count?: number | undefined;
}

/** A span as it begins. */
export interface SpanStart {
  readonly name: SpanName;
  /**
   * Id of the operation or inbox row that it tells of: the trace's id is made from it, so that all processes meet in one
   * trace. Left out: it belongs to whatever surrounds it.
   */
  readonly of?: string | undefined;
  readonly facts?: SpanFacts;
  /** Ids of other rows whose traces it is linked to. */
  readonly related?: readonly string[];
}

/** A span that was measured already. */
export interface MeasuredSpan extends SpanStart {
  /** Unix time in ms. */
  readonly startedAt: number;
  /** It is what began the row's story: the first span of its trace. */
  readonly first?: boolean;
  /** The caller's `traceparent` header, which it is linked to; one that can't be read is ignored. */
  readonly traceparent?: string | undefined;
}

/** A span while its work runs. */
export interface OpenSpan {
  note(facts: SpanFacts): void;
}

/** What traces are made with. No method throws but for what `work` throws. */
export interface Tracer {
  inSpan<Result>(start: SpanStart, work: (span: OpenSpan) => Promise<Result>): Promise<Result>;
  record(span: MeasuredSpan): void;
  within<Result>(of: string, work: () => Result): Result;
  /** Sends what is left, for at most so many ms. */
  stop(limitMs: number): Promise<void>;
}

let tracer: Tracer | undefined;

const silent: OpenSpan = { note: () => undefined };

/**
 * Runs work in a span. Whatever becomes of the tracing, the work runs once, and its result or error is the caller's. Without
 * traces it is only called.
 */
export function inSpan<Result>(start: SpanStart, work: (span: OpenSpan) => Promise<Result>): Promise<Result> {
  return tracer === undefined ? work(silent) : tracer.inSpan(start, work);
}

/** Adds a span of what has just ended, where its trace is known only then. Never throws. */
export function recordSpan(span: MeasuredSpan): void {
  tracer?.record(span);
}

/** Runs work as a part of a row's trace, without a span of its own. */
export function withinTrace<Result>(of: string, work: () => Result): Result {
  return tracer === undefined ? work() : tracer.within(of, work);
}

/** The W3C `traceparent` of a row's trace, for a job that tells of it; undefined without traces, or where the id is no UUID. */
export function traceparentOf(id: string): string | undefined {
  return tracer === undefined ? undefined : traceparentFor(id);
}

/**
 * Starts traces where the environment asks for them ({@link tracesWanted}); nothing is loaded otherwise. Never rejects: a
 * process works without its traces.
 */
export async function startTracing(name: string, logger: Logger, env = process.env): Promise<void> {
  try {
    const wanted = tracesWanted(env);
    if (wanted === "unsupported")
      logger.warn({ reason: "unsupported-exporter" }, "no traces: only otlp over HTTP is sent");
    if (wanted !== "yes") return;
    const { openTracer } = await import("./tracing-otel.js");
    tracer = openTracer({ process: name, logger });
  } catch (error) {
    logger.warn({ err: error }, "no traces: they could not be started");
  }
}

/** Sends what is left, for at most so many ms, and ends traces. Never rejects. */
export async function stopTracing(limitMs: number): Promise<void> {
  const stopping = tracer;
  tracer = undefined;
  try {
    await stopping?.stop(limitMs);
  } catch {
    // What could not be sent is lost; the process ends all the same.
  }
}
