import { randomUUID } from "node:crypto";
import { claimWork, openTicket, pollAbout, postponeWork, type WorkItem } from "@countersign/ledger";
import { actByPolicy } from "./act-by-policy.js";
import { auditOperation } from "./audit-operation.js";
import { pollRequest } from "./poll-request.js";
import { probeConnection } from "./probe-connection.js";
import type { ReconcileDeps } from "./reconcile-deps.js";

/** What a work item came to: done (it was deleted with its result), or to be done later. */
export type WorkEnd = { kind: "done"; what: string } | { kind: "later"; delayMs: number; what: string };
export type WorkOutcome = WorkEnd | { kind: "not-claimed" };

/** Longest wait between two tries of a work item, ms. */
const longestDelayMs = 3_600_000;

/** Failures after which a person is asked. */
const failuresForTicket = 5;

/**
 * Runs one work item under its lease. Its end deletes it in the transaction of its result, so that one that died half-way
 * is simply done again.
 */
export async function runWork(deps: ReconcileDeps, tenantId: string, workItemId: string): Promise<WorkOutcome> {
  const item = await claimWork(deps.ledger, tenantId, workItemId, randomUUID(), deps.leaseMs);
  if (item === undefined) return { kind: "not-claimed" };
  const started = performance.now();
  const end = await runOrPostpone(deps, item);
  if (end.kind === "later") await postponeWork(deps.ledger.sql, item, Math.min(end.delayMs, longestDelayMs));
  const ms = Math.round(performance.now() - started);
  deps.logger.info({ tenant: tenantId, kind: item.kind, ...operationOf(item), outcome: end.what, ms }, "work item run");
  return end;
}

/** Polls and probes are about a request or a connection; their subject may be the provider's own reference. */
const operationOf = ({ kind, subjectId }: WorkItem): { operation?: string } =>
  kind === "audit" || kind === "policy" ? { operation: subjectId } : {};

/** One that fails is done again later; one that fails again and again is a person's. It is never lost. */
async function runOrPostpone(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  try {
    return await run(deps, item);
  } catch (error) {
    deps.logger.error({ err: error, tenant: item.tenantId, kind: item.kind, count: item.attempts }, "work item failed");
    if (item.attempts >= failuresForTicket) {
      await openTicket(deps.ledger.sql, {
        tenantId: item.tenantId,
        kind: "dead-letter",
        ...aboutWhat(item),
        reason: `${item.kind}-fails`,
        details: { attempts: item.attempts },
      });
    }
    const delayMs = Math.min(longestDelayMs, deps.backoff.maxMs * 2 ** Math.min(item.attempts, 10));
    return { kind: "later", delayMs, what: "failed" };
  }
}

function aboutWhat(item: WorkItem): { subjectKind: "connection" | "operation" | "inbox"; subjectId: string } {
  if (item.kind === "poll") return pollAbout(item);
  return { subjectKind: item.kind === "probe" ? "connection" : "operation", subjectId: item.subjectId };
}

async function run(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  switch (item.kind) {
    case "audit":
      return await auditOperation(deps, item);
    case "probe":
      return await probeConnection(deps, item);
    case "policy":
      return await actByPolicy(deps, item);
    case "poll":
      return await pollRequest(deps, item);
  }
}
