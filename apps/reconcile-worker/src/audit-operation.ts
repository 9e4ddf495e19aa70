import {
  finishWork,
  getReferences,
  guardStates,
  openTicket,
  orphanDrafts,
  readForAudit,
  recordAudit,
  recordEvidence,
  sqlState,
  type TransactionSql,
  type WorkItem,
} from "@countersign/ledger";
import {
  type LookupQuery,
  type LookupResult,
  type Match,
  meansSent,
  type SignatureProvider,
  signingStatusOf,
} from "@countersign/provider";
import { backoffMs } from "@countersign/runtime";
import { afterLook } from "./after-look.js";
import { askProvider } from "./ask-provider.js";
import { readsByReference } from "./capabilities.js";
import { lookupCall, type OpenConnection, type ReconcileDeps } from "./reconcile-deps.js";
import type { WorkEnd } from "./run-work.js";
import { voidRequestOf } from "./void-request.js";

type Audited = NonNullable<Awaited<ReturnType<typeof readForAudit>>>;

/**
 * After it is final, look once more (DESIGN §3): by our own id at `quiet_from` plus the window, and after a day. It
 * detects what no window can rule out; what it finds opens a ticket and never changes the operation's state.
 */
export async function auditOperation(deps: ReconcileDeps, item: WorkItem): Promise<WorkEnd> {
  const operation = await readForAudit(deps.ledger, item.tenantId, item.subjectId, deps.quiescenceMs);
  if (operation === undefined) return await done(deps, item, "nothing-to-audit");
  if (operation.waitMs > 0) return { kind: "later", delayMs: operation.waitMs, what: "inside-the-window" };
  const connection = await deps.connection(item.tenantId, operation.connectionId);
  const provider = deps.provider(connection.provider);
  if (provider === undefined) throw new Error(`no adapter for provider ${connection.provider}`);
  if (connection.circuitOpen || connection.pausedForMs > 0) {
    return { kind: "later", delayMs: Math.max(connection.pausedForMs, deps.backoff.maxMs), what: "connection-closed" };
  }
  const result = await look(deps, operation, connection, provider);
  if (result === undefined) return await done(deps, item, "nothing-can-be-asked");
  await afterLook(deps, connection, result);
  if (result.kind === "failed") {
    return {
      kind: "later",
      delayMs: Math.max(result.retryAfterMs ?? 0, deps.backoff.maxMs + backoffMs(item.attempts, deps.backoff)),
      what: "lookup-failed",
    };
  }
  return operation.action === "SEND"
    ? await auditSend(deps, item, operation, provider, result)
    : await auditVoid(deps, item, operation, result);
}

async function done(deps: ReconcileDeps, item: WorkItem, what: string): Promise<WorkEnd> {
  await finishWork(deps.ledger.sql, item);
  return { kind: "done", what };
}

async function look(
  deps: ReconcileDeps,
  operation: Audited,
  connection: OpenConnection,
  provider: SignatureProvider,
): Promise<LookupResult | undefined> {
  const call = lookupCall(deps, connection);
  const { tenantId, operationId, targetRef } = operation;
  const about = { tenant: tenantId, operation: operationId, connection: connection.connectionId };
  const ask = (query: LookupQuery): Promise<LookupResult> =>
    askProvider(deps.logger, { ...about, kind: query.by }, () => provider.lookup(query, call));
  if (operation.action === "SEND") {
    if (!provider.capabilities.SEND.lookup.byMetadata || !connection.metadataLookup) return undefined;
    return await ask({ by: "metadata", tenantId, operationId });
  }
  if (operation.action !== "VOID" || targetRef === null || !readsByReference(provider)) return undefined;
  return await ask({ by: "reference", ref: targetRef });
}

async function auditSend(
  deps: ReconcileDeps,
  item: WorkItem,
  operation: Audited,
  provider: SignatureProvider,
  result: Exclude<LookupResult, { kind: "failed" }>,
): Promise<WorkEnd> {
  const { tenantId, operationId } = operation;
  const matches = result.kind === "found" ? result.matches : [];
  const known = new Set((await getReferences(deps.ledger, tenantId, operationId)).map((each) => each.providerRef));
  // Read outside the transaction: nothing foreign is awaited while it is open.
  await deps.ledger.tenantKey(tenantId);
  const unknown = matches.filter((match) => !known.has(match.ref));
  return await deps.ledger.sql.begin(async (sql): Promise<WorkEnd> => {
    // The lease is gone: whoever has it now does the whole of it.
    if (!(await finishWork(sql, item))) return { kind: "done", what: "taken-over" };
    for (const match of unknown) await recordUnknown(sql, operation, match);
    const discarded = await orphanDrafts(deps.ledger, sql, tenantId, operationId, voidRequestOf(provider));
    await recordAudit(sql, tenantId, operationId, {
      reason: unknown.length > 0 ? "more-found" : "nothing-new",
      evidence: {
        matches: matches.length,
        unknown: unknown.length,
        draftsDiscarded: discarded.length,
        ms: Math.round(result.ms),
      },
    });
    return { kind: "done", what: unknown.length > 0 ? "more-found" : "nothing-new" };
  });
}

async function recordUnknown(sql: TransactionSql, operation: Audited, match: Match): Promise<void> {
  const { tenantId, operationId } = operation;
  try {
    await sql.savepoint(async (inner) => {
      await recordEvidence(inner, {
        tenantId,
        operationId,
        providerRef: match.ref,
        role: meansSent(match.status) ? "evidence" : "draft",
        source: "lookup",
        signingStatus: signingStatusOf[match.status],
        actor: "audit",
        reason: "found-by-audit",
        details: { status: match.status },
      });
    });
  } catch (error) {
    // Another operation's: its own ticket, not evidence for this one.
    if (sqlState(error) !== guardStates.referenceOfAnotherOperation) throw error;
    await ticket(sql, operation, "reference-of-another-operation");
  }
}

const ticket = (sql: TransactionSql, { tenantId, operationId }: Audited, reason: string): Promise<void> =>
  openTicket(sql, { tenantId, kind: "signing-conflict", subjectKind: "operation", subjectId: operationId, reason });

/** Nothing at the provider keeps a signer from being faster than an accepted VOID: the target must be over as we said. */
async function auditVoid(
  deps: ReconcileDeps,
  item: WorkItem,
  operation: Audited,
  result: Exclude<LookupResult, { kind: "failed" }>,
): Promise<WorkEnd> {
  const status =
    result.kind === "found" ? result.matches.find((match) => match.ref === operation.targetRef)?.status : undefined;
  const asSaid =
    operation.state !== "CONFIRMED" || status === "withdrawn" || status === "discarded" || status === "expired";
  const what = asSaid ? "as-said" : `void-confirmed-but-target-${status ?? "not-found"}`;
  return await deps.ledger.sql.begin(async (sql): Promise<WorkEnd> => {
    if (!(await finishWork(sql, item))) return { kind: "done", what: "taken-over" };
    if (!asSaid) await ticket(sql, operation, what);
    await recordAudit(sql, operation.tenantId, operation.operationId, {
      reason: what,
      evidence: { status: status ?? "none" },
    });
    return { kind: "done", what };
  });
}
