import { finishWork, halfOpen, noteProviderUp, type WorkItem } from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { healthOfLookup } from "@countersign/worker";
import { askProvider } from "./ask-provider.js";
import { lookupCall, type ReconcileDeps } from "./reconcile-deps.js";
import type { WorkEnd } from "./run-work.js";

/** Probes are never further apart than this many first pauses. */
const longestStep = 10;

/**
 * The one call that is made while a connection's circuit is open: a harmless read. An answer closes the circuit, and what
 * waited becomes due gradually. Where a provider has nothing to read, time half-opens it.
 */
export async function probeConnection(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  const { tenantId, subjectId: connectionId } = item;
  const connection = await deps.connection(tenantId, connectionId);
  const provider = deps.provider(connection.provider);
  const lookup = provider?.capabilities.SEND.lookup;
  if (provider === undefined || !(lookup?.byMetadata === true || lookup?.byReference === true)) {
    await halfOpen(deps.ledger, tenantId, connectionId, deps.circuit);
    await finishWork(deps.ledger.sql, item);
    return { kind: "done", what: "half-opened" };
  }
  // Nobody has this id: whatever is answered, it was answered.
  const query = lookup.byMetadata
    ? ({ by: "metadata", tenantId, operationId: newId() } as const)
    : ({ by: "reference", ref: newId() } as const);
  const result = await askProvider(deps.logger, { tenant: tenantId, connection: connectionId, kind: query.by }, () =>
    provider.lookup(query, lookupCall(deps, connection)),
  );
  if (healthOfLookup(result) === "up") {
    await noteProviderUp(deps.ledger, tenantId, connectionId);
    await finishWork(deps.ledger.sql, item);
    return { kind: "done", what: "closed" };
  }
  const step = Math.min(longestStep, 2 ** Math.min(item.attempts - 1, 10));
  return { kind: "later", delayMs: deps.circuit.probeMs * step * (0.5 + Math.random() / 2), what: "still-down" };
}
