import { createHash } from "node:crypto";
import { z } from "zod";

/** The queues of DESIGN §5. `audit` and `poll` work runs on `reconcile`. */
export const queueNames = ["submit", "reconcile", "webhook-apply", "notify"] as const;
export type QueueName = (typeof queueNames)[number];

const id = z.string().min(1).max(512);

/**
 * All that a job carries: whose, what kind of row, and which one. Nothing personal and nothing that could go stale; the
 * worker reads the row. Strict, so that nobody adds a field that would end up in Redis.
 */
export const jobData = z.strictObject({ tenantId: id, kind: id, subjectId: id });
export type JobData = z.output<typeof jobData>;

/** One job to hand to a queue. */
export interface Dispatch extends JobData {
  readonly queue: QueueName;
  /** Raised by the caller once the former job is gone, failed or finished: a whole number from 0. */
  readonly generation: number;
}

/**
 * The job's id in its queue: a digest of whose and which row, and the generation. Whatever the parts hold (colons,
 * digits only, any script, any length), the id has a fixed alphabet without `:` and a letter in front, and two different
 * (tenant, kind, subject) never share one.
 */
export function jobId(subject: JobData, generation: number): string {
  // A JSON array keeps the parts apart: ["a","b:c"] and ["a:b","c"] differ.
  const parts = JSON.stringify([subject.tenantId, subject.kind, subject.subjectId]);
  return `j${createHash("sha256").update(parts).digest("base64url")}-g${generation}`;
}
