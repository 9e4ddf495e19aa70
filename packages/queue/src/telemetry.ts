import { traceparentOf, tracesWanted } from "@countersign/runtime";
import type { Telemetry } from "bullmq";

/** BullMQ's own spans, where traces are wanted; nothing is loaded otherwise, and a queue works without them. */
export const telemetry: Telemetry | undefined = await load();

async function load(): Promise<Telemetry | undefined> {
  if (tracesWanted(process.env) !== "yes") return undefined;
  try {
    const { BullMQOtel } = await import("bullmq-otel");
    return new BullMQOtel({ tracerName: "countersign-queue" });
  } catch {
    return undefined;
  }
}

/** The trace that a job belongs to, as BullMQ keeps it with the job: that of the row it names, ids only. */
export function traceOfJob(subjectId: string): { telemetry?: { metadata: string } } {
  const traceparent = traceparentOf(subjectId);
  return traceparent === undefined ? {} : { telemetry: { metadata: JSON.stringify({ traceparent }) } };
}
