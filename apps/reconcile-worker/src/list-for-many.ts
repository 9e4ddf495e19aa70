import { randomUUID } from "node:crypto";
import { claimManyForReconcile, dueForLookup } from "@countersign/ledger";
import type { LookupResult, SignatureProvider } from "@countersign/provider";
import { afterLook } from "./after-look.js";
import { askProvider, type Look } from "./ask-provider.js";
import { isClosed } from "./gather-evidence.js";
import { claimOf, lookupCall, type OpenConnection, type ReconcileDeps } from "./reconcile-deps.js";
import type { Claimed } from "./reconcile-operation.js";

/** One list settles at most so many rows: their verdicts are written well inside the lease. */
const atMost = 200;
/** Below this, each row's own lookup is as cheap. */
const atLeast = 3;

/** The provider stamps requests by its own clock: the list begins this much before our first attempt, ms. */
const clockMarginMs = 10 * 60_000;

const mayList = (connection: OpenConnection, provider: SignatureProvider): boolean =>
  provider.lookupMany !== undefined && provider.capabilities.SEND.lookup.many === true && connection.metadataLookup;

/** Claims the rows that wait for the same list as this one; none where the provider has no list or too few wait. */
export async function claimCompanions(
  deps: ReconcileDeps,
  first: Claimed,
  connection: OpenConnection,
  provider: SignatureProvider,
): Promise<Claimed[]> {
  const { row } = first;
  const asksByMetadata = row.action === "SEND" && !isClosed(row) && row.references_seen === 0;
  if (!asksByMetadata || !mayList(connection, provider)) return [];
  const due = await dueForLookup(deps.ledger, row.tenant_id, row.connection_id, atMost);
  if (due.length < atLeast - 1) return [];
  const asked = due.map(({ operationId }) => ({ operationId, owner: randomUUID() }));
  const claims = await claimManyForReconcile(
    deps.ledger,
    asked.map(({ operationId, owner }) => claimOf(deps, row.tenant_id, operationId, owner)),
  );
  return claims.flatMap((claim, index) => {
    const owner = asked[index]?.owner;
    return claim.applied && owner !== undefined ? [{ row: claim.row, owner }] : [];
  });
}

const lookOf = ([first, ...others]: readonly Claimed[], connection: OpenConnection): Look => ({
  tenant: connection.tenantId,
  connection: connection.connectionId,
  kind: "list",
  operation: first?.row.operation_id,
  related: others.map(({ row }) => row.operation_id),
});

/**
 * One list for all of them. A row that it shows is settled by it; one that it doesn't show only where this connection's
 * list has been verified, else its own lookup follows. A list that failed failed for all: nobody asks again at once.
 */
export async function listForMany(
  deps: ReconcileDeps,
  claimed: readonly Claimed[],
  connection: OpenConnection,
  provider: SignatureProvider,
): Promise<ReadonlyMap<string, LookupResult>> {
  const operationIds = claimed.map(({ row }) => row.operation_id);
  const firstAttempts = claimed.map(({ row }) => Date.parse(row.first_attempt_at ?? row.db_now));
  const query = {
    tenantId: connection.tenantId,
    operationIds,
    createdAfter: new Date(Math.min(...firstAttempts) - clockMarginMs),
  };
  const { lookupMany } = provider;
  if (lookupMany === undefined) return new Map();
  const answer = await askProvider(deps.logger, lookOf(claimed, connection), () =>
    lookupMany.call(provider, query, lookupCall(deps, connection)),
  );
  await afterLook(deps, connection, answer);
  if (answer.kind === "failed") return new Map(operationIds.map((id) => [id, answer]));
  const mayBeAbsent = provider.capabilities.SEND.lookup.documented || connection.lookupVerification?.list === true;
  const listed = new Map<string, LookupResult>();
  for (const id of operationIds) {
    const matches = answer.matches.get(id) ?? [];
    if (matches.length > 0 || mayBeAbsent)
      listed.set(id, { kind: "found", matches, pages: answer.pages, ms: answer.ms });
  }
  return listed;
}
