import {
  type Ledger,
  listConnections,
  type PlanOutcome,
  planInside,
  postgresDocumentStore,
  type TransactionSql,
} from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import { type PlanningParts, type PlanRequest, preparePlan } from "./prepare-plan.js";

export { describeEvent, type EventDescription } from "./describe-event.js";
export { type DryRun, type DryRunOptions, type DryRunRow, dryRunReplay } from "./dry-run-replay.js";
export { type Decidable, openDecisions } from "./open-decisions.js";
export { chooseConnection, type PlanningParts, type PlanRequest, preparePlan, voidRequestOf } from "./prepare-plan.js";
export { prepareReview, type ReviewRequest } from "./prepare-review.js";
export { type NotReplayed, whyNotReplayed } from "./preview-replay.js";
export { countOutcomes, type Replayed, replayMany } from "./replay-many.js";
export { toInboxFilter } from "./to-inbox-filter.js";

/** The usual parts over one ledger and the built-in adapters. */
export function planningParts(ledger: Ledger): PlanningParts {
  const documents = postgresDocumentStore(ledger);
  return {
    provider: providerByName,
    connections: (tenantId) => listConnections(ledger, tenantId),
    document: (tenantId, sha256) => documents.get(tenantId, sha256),
  };
}

/**
 * For producers that share the ledger's database: prepare first (it reads, outside the transaction), then record the
 * intent inside your own transaction, so that it and your business row commit together or not at all.
 *
 * ```ts
 * const record = await planInTransaction(ledger, { tenantId, intentKey, action: "SEND", payload });
 * await ledger.sql.begin(async (sql) => {
 *   await sql`UPDATE contract SET approved_at = now() WHERE id = ${id}`;
 *   await record(sql);
 * });
 * ```
 * Nothing is handed to a queue; a worker's due loop finds the row after the commit.
 */
export async function planInTransaction(
  ledger: Ledger,
  request: PlanRequest,
): Promise<(sql: TransactionSql) => Promise<PlanOutcome>> {
  await ledger.tenantKey(request.tenantId);
  const plan = await preparePlan(planningParts(ledger), request);
  return (sql) => planInside(ledger, sql, plan);
}
