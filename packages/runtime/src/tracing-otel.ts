import {
  type Attributes,
  type Context,
  context,
  DiagLogLevel,
  diag,
  type Link,
  type Tracer as OtelTracer,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  type IdGenerator,
  NodeTracerProvider,
  RandomIdGenerator,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-node";
import type { Logger } from "./logger.js";
import type { MeasuredSpan, OpenSpan, SpanFacts, SpanName, SpanStart, Tracer } from "./tracing.js";
import { byAllowList, httpStatusAttribute, ownPrefix } from "./tracing-exporter.js";
import { type TraceRoot, traceRootOf } from "./tracing-ids.js";
import { StorySampler, sampledShare } from "./tracing-sampler.js";

const kinds: Readonly<Record<SpanName, SpanKind>> = {
  plan: SpanKind.SERVER,
  submit: SpanKind.INTERNAL,
  "provider.call": SpanKind.CLIENT,
  reconcile: SpanKind.INTERNAL,
  "provider.lookup": SpanKind.CLIENT,
  "webhook.receive": SpanKind.SERVER,
  "webhook.apply": SpanKind.INTERNAL,
};

/** Spans kept while the receiver is away; what comes beyond is dropped. */
const queueSize = 2_048;
/** How long one delivery may take, ms: the next waits for it. */
const deliveryMs = 5_000;
/** Pause between deliveries, ms. */
const everyMs = 1_000;

export interface TracerSettings {
  readonly process: string;
  readonly logger: Logger;
  /** OTLP over HTTP, as the environment says, when left out. */
  readonly exporter?: SpanExporter;
}

/** Loads OpenTelemetry and registers it for this process, the queue's spans included. */
export function openTracer(settings: TracerSettings): Tracer {
  const trouble = new TroubleLog(settings.logger);
  diag.setLogger(trouble.asDiagLogger(), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const ids = new StoryIds();
  const exporter = settings.exporter ?? new OTLPTraceExporter();
  const provider = new NodeTracerProvider({
    resource: detectResources({ detectors: [envDetector] }).merge(
      resourceFromAttributes({ "service.name": `countersign-${settings.process}`, "process.pid": process.pid }),
    ),
    sampler: new StorySampler(sampledShare(process.env)),
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor(byAllowList(exporter), {
        maxQueueSize: setting("OTEL_BSP_MAX_QUEUE_SIZE", queueSize),
        exportTimeoutMillis: setting("OTEL_BSP_EXPORT_TIMEOUT", deliveryMs),
        scheduledDelayMillis: setting("OTEL_BSP_SCHEDULE_DELAY", everyMs),
      }),
    ],
  });
  provider.register();
  return new StoryTracer(provider, ids, trouble);
}

function setting(name: string, otherwise: number): number {
  const value = Number.parseInt(process.env[name] ?? "", 10);
  return value > 0 ? value : otherwise;
}

/** Random ids, but for a span that is to be the known first one of its trace. */
class StoryIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #first: TraceRoot | undefined;

  generateTraceId = (): string => this.#first?.traceId ?? this.#random.generateTraceId();
  generateSpanId = (): string => this.#first?.spanId ?? this.#random.generateSpanId();

  /** What `start` starts is the first span of that trace; it must not wait for anything. */
  asFirst(root: TraceRoot, start: () => Span): Span {
    this.#first = root;
    try {
      return start();
    } finally {
      this.#first = undefined;
    }
  }
}

/** How long a fault of the tracing is not repeated in the log, ms. */
const quietMs = 300_000;

/** One line for a fault of the tracing, however often it comes: its text is a library's, and is left out. */
class TroubleLog {
  readonly #logger: Logger;
  #saidAt = Number.NEGATIVE_INFINITY;
  #unsaid = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note = (): void => {
    if (performance.now() - this.#saidAt < quietMs) {
      this.#unsaid += 1;
      return;
    }
    this.#saidAt = performance.now();
    this.#logger.warn({ suppressed: this.#unsaid }, "traces are not delivered: the work goes on without them");
    this.#unsaid = 0;
  };

  asDiagLogger() {
    const nothing = (): void => undefined;
    return { error: this.note, warn: this.note, info: nothing, debug: nothing, verbose: nothing };
  }
}

class StoryTracer implements Tracer {
  readonly #provider: NodeTracerProvider;
  readonly #tracer: OtelTracer;
  readonly #ids: StoryIds;
  readonly #trouble: TroubleLog;

  constructor(provider: NodeTracerProvider, ids: StoryIds, trouble: TroubleLog) {
    this.#provider = provider;
    this.#tracer = provider.getTracer("countersign");
    this.#ids = ids;
    this.#trouble = trouble;
  }

  async inSpan<Result>(start: SpanStart, work: (span: OpenSpan) => Promise<Result>): Promise<Result> {
    const opened = this.#guarded(() => this.#open(start));
    if (opened === undefined) return await work({ note: () => undefined });
    const { span, around } = opened;
    try {
      return await context.with(around, () =>
        work({ note: (facts) => this.#guarded(() => span.setAttributes(toAttributes(facts))) }),
      );
    } catch (error) {
      this.#guarded(() => span.setStatus({ code: SpanStatusCode.ERROR }));
      throw error;
    } finally {
      this.#guarded(() => span.end());
    }
  }

  record(measured: MeasuredSpan): void {
    this.#guarded(() => {
      const root = measured.first === true && measured.of !== undefined ? traceRootOf(measured.of) : undefined;
      const begin = { startTime: measured.startedAt };
      const { span } = root === undefined ? this.#open(measured, begin) : this.#openFirst(root, measured, begin);
      span.end();
    });
  }

  within<Result>(of: string, work: () => Result): Result {
    const around = this.#guarded(() => this.#placeOf(of).parent);
    return around === undefined ? work() : context.with(around, work);
  }

  async stop(limitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, limitMs));
    });
    await Promise.race([this.#provider.shutdown().catch(this.#trouble.note), limit]);
    clearTimeout(timer);
  }

  #open(start: SpanStart, more: SpanOptions = {}): { span: Span; around: Context } {
    const { parent, links } = this.#placeOf(start.of);
    const span = this.#tracer.startSpan(start.name, this.#options(start, links, more), parent);
    return { span, around: trace.setSpan(parent, span) };
  }

  #openFirst(root: TraceRoot, start: SpanStart, more: SpanOptions): { span: Span; around: Context } {
    const options = { ...this.#options(start, [], more), root: true };
    const span = this.#ids.asFirst(root, () => this.#tracer.startSpan(start.name, options, ROOT_CONTEXT));
    return { span, around: trace.setSpan(ROOT_CONTEXT, span) };
  }

  /**
   * Where a span of this row belongs: below what surrounds it where that is the row's own trace, else below the trace's
   * first span, linked to what surrounds it.
   */
  #placeOf(of: string | undefined): { parent: Context; links: Link[] } {
    const active = context.active();
    const root = of === undefined ? undefined : traceRootOf(of);
    if (root === undefined) return { parent: active, links: [] };
    const surrounding = trace.getSpanContext(active);
    if (surrounding?.traceId === root.traceId) return { parent: active, links: [] };
    return {
      parent: trace.setSpanContext(active, contextOf(root)),
      links: surrounding === undefined ? [] : [{ context: surrounding }],
    };
  }

  #options(start: SpanStart & { traceparent?: string | undefined }, links: Link[], more: SpanOptions): SpanOptions {
    const related = (start.related ?? []).flatMap((id) => {
      const root = traceRootOf(id);
      return root === undefined ? [] : [{ context: contextOf(root) }];
    });
    return {
      ...more,
      kind: kinds[start.name],
      attributes: toAttributes(start.facts ?? {}),
      links: [...links, ...related, ...linkToCaller(start.traceparent)],
    };
  }

  /** Nothing of the tracing may reach the work. */
  #guarded<Result>(action: () => Result): Result | undefined {
    try {
      return action();
    } catch {
      this.#trouble.note();
      return undefined;
    }
  }
}

const contextOf = (root: TraceRoot) => ({ ...root, traceFlags: TraceFlags.SAMPLED, isRemote: true });

function linkToCaller(traceparent: string | undefined): Link[] {
  if (traceparent === undefined) return [];
  const caller = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent }));
  return caller === undefined ? [] : [{ context: caller }];
}

function toAttributes({ status, ...facts }: SpanFacts): Attributes {
  const attributes: Attributes = {};
  for (const [name, value] of Object.entries(facts)) {
    if (value !== undefined) attributes[`${ownPrefix}${name}`] = typeof value === "number" ? Math.round(value) : value;
  }
  if (status !== undefined) attributes[httpStatusAttribute] = status;
  return attributes;
}
