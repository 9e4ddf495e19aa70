import { applyPolled, type Polled, type PollSubject, readPoll, type WorkItem } from "@countersign/ledger";
import { type LookupResult, signingStatusOf } from "@countersign/provider";
import { backoffMs, operationId } from "@countersign/runtime";
import { afterLook } from "./after-look.js";
import { askProvider } from "./ask-provider.js";
import { readsByReference } from "./capabilities.js";
import { lookupCall, type ReconcileDeps } from "./reconcile-deps.js";
import type { WorkEnd } from "./run-work.js";

/**
 * Asks the provider for the state of one request and applies the answer through the same conditional writes as an event:
 * for a request that is not over and that nobody has spoken of, or for an event that may only hint.
 */
export async function pollRequest(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  const subject = await readPoll(deps.ledger, item);
  if (subject === undefined)
    return await settle(deps, item, undefined, { kind: "unreadable", reason: "nothing-to-poll" });
  const { tenantId, connectionId, providerRef } = subject.key;
  const connection = await deps.connection(tenantId, connectionId);
  const provider = deps.provider(connection.provider);
  if (provider === undefined) throw new Error(`no adapter for provider ${connection.provider}`);
  if (!readsByReference(provider)) {
    return await settle(deps, item, subject, { kind: "unreadable", reason: "provider-cannot-be-asked" });
  }
  if (connection.circuitOpen || connection.pausedForMs > 0) {
    return { kind: "later", delayMs: Math.max(connection.pausedForMs, deps.backoff.maxMs), what: "connection-closed" };
  }
  const result = await askProvider(deps.logger, { tenant: tenantId, connection: connectionId, kind: "reference" }, () =>
    provider.lookup({ by: "reference", ref: providerRef }, lookupCall(deps, connection)),
  );
  await afterLook(deps, connection, result);
  if (result.kind === "failed") {
    const delayMs = Math.max(result.retryAfterMs ?? 0, backoffMs(item.attempts, deps.backoff));
    return { kind: "later", delayMs, what: result.cause === "no-permit" ? "no-permit" : "lookup-failed" };
  }
  const polled = readingOf(result, tenantId);
  if (polled.kind === "not-found" && subject.ageMs < deps.lookupLagMs) {
    return { kind: "later", delayMs: deps.lookupLagMs, what: "inside-the-lag" };
  }
  return await settle(deps, item, subject, polled);
}

/** The record in our words. Metadata of ours counts only where it names this tenant, too. Pure. */
export function readingOf(result: Exclude<LookupResult, { kind: "failed" }>, tenantId: string): Polled {
  const match = result.kind === "found" ? result.matches[0] : undefined;
  if (match === undefined) return { kind: "not-found" };
  const own = match.tenantId === tenantId ? operationId.safeParse(match.operationId) : undefined;
  return {
    kind: "found",
    status: signingStatusOf[match.status],
    ...(own?.success === true ? { operationId: own.data } : {}),
  };
}

async function settle(
  deps: ReconcileDeps,
  item: WorkItem,
  subject: PollSubject | undefined,
  polled: Polled,
): Promise<WorkEnd> {
  const applied = await applyPolled(deps.ledger, item, subject, polled, deps.eventWaitMs);
  return { kind: "done", what: `poll-${applied.kind}` };
}
