import { pauseConnection } from "@countersign/ledger";
import type { LookupManyResult, LookupResult } from "@countersign/provider";
import { healthOfLookup } from "@countersign/worker";
import type { OpenConnection, ReconcileDeps } from "./reconcile-deps.js";

const defaultRetryAfterMs = 60_000;

/** What an answer says beyond its row: the provider's health, and a rate that everybody on this connection must respect. */
export async function afterLook(
  deps: ReconcileDeps,
  connection: OpenConnection,
  result: LookupResult | LookupManyResult,
): Promise<void> {
  await deps.health?.note(connection, healthOfLookup(result));
  if (result.kind !== "failed") return;
  const { tenantId, connectionId } = connection;
  if (result.cause === "rate_limited") {
    await pauseConnection(
      deps.ledger,
      tenantId,
      connectionId,
      "rate-limited",
      result.retryAfterMs ?? defaultRetryAfterMs,
    );
  }
}
