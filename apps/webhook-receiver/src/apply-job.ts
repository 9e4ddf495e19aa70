import type { JobData, JobHandler } from "@countersign/queue";
import type { Metrics } from "@countersign/runtime";
import { ApplyError, type ApplyParts, applyInboxEntry } from "./apply-event.js";

/** One job of queue `webhook-apply`: the inbox row that it names. Throws for a job of another kind. */
export async function handleApplyJob(parts: ApplyParts, job: JobData): Promise<void> {
  if (job.kind !== "inbox") throw new ApplyError("unknown-kind");
  await applyInboxEntry(parts, { tenantId: job.tenantId, inboxId: job.subjectId });
}

/** The queue's handler, its outcomes counted. */
export function applyHandler(parts: ApplyParts, metrics: Metrics): JobHandler {
  const applied = metrics.counter<"outcome">({
    name: "countersign_webhook_applied_total",
    help: "Applications of stored events, by outcome",
    labels: ["outcome"],
  });
  return (job) => handleApplyJob({ ...parts, onOutcome: (outcome) => applied.inc({ outcome }) }, job);
}
