import type { Attributes } from "@opentelemetry/api";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-node";
import { looksLikeIdentifier } from "./redaction.js";

/** Attributes of the queue's own spans that pass; ours are all in {@link ownPrefix}. */
const queueAttributes = new Set([
  "bullmq.queue.name",
  "bullmq.queue.operation",
  "bullmq.job.id",
  "bullmq.job.name",
  "bullmq.job.bulk.count",
  "bullmq.job.attempts.made",
]);

/** Leads the name of every attribute of ours. */
export const ownPrefix = "countersign.";

/** Status of the provider's answer, under the name that trace stores know. */
export const httpStatusAttribute = "http.response.status_code";

/**
 * An exporter that lets through what a span may say and nothing else, as the logger does for lines: names on the list with
 * harmless values. Events, messages and trace states are dropped: libraries quote errors and callers in them.
 */
export function byAllowList(exporter: SpanExporter): SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(sanitized), done),
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush === undefined ? {} : { forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve() }),
  };
}

function sanitized(span: ReadableSpan): ReadableSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...(span.parentSpanContext === undefined ? {} : { parentSpanContext: withoutState(span.parentSpanContext) }),
    startTime: span.startTime,
    endTime: span.endTime,
    duration: span.duration,
    ended: span.ended,
    status: { code: span.status.code },
    attributes: allowed(span.attributes),
    links: span.links.map((link) => ({ context: withoutState(link.context) })),
    events: [],
    resource: span.resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: span.droppedLinksCount,
  };
}

type SpanContext = ReturnType<ReadableSpan["spanContext"]>;

const withoutState = ({ traceId, spanId, traceFlags, isRemote }: SpanContext): SpanContext => ({
  traceId,
  spanId,
  traceFlags,
  ...(isRemote === undefined ? {} : { isRemote }),
});

function allowed(attributes: Attributes): Attributes {
  const result: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (!name.startsWith(ownPrefix) && !queueAttributes.has(name) && name !== httpStatusAttribute) continue;
    if (typeof value === "number" || typeof value === "boolean") result[name] = value;
    else if (typeof value === "string" && looksLikeIdentifier(value)) result[name] = value;
  }
  return result;
}
