import {
  type Application,
  applyEvent,
  certainlyRolledBack,
  type DueJob,
  getOperation,
  type InboxEntry,
  type Ledger,
  openInboxEntry,
  quarantineInbox,
  recordApplyFailure,
  sqlState,
} from "@countersign/ledger";
import {
  isHint,
  ownOperation,
  type SignatureProvider,
  type SigningEvent,
  signingStatusOf,
  type WebhookContract,
} from "@countersign/provider";
import { backoffMs, type Logger, recordSpan, safeError } from "@countersign/runtime";

export interface ApplyParts {
  readonly ledger: Ledger;
  providerByName(name: string): SignatureProvider | undefined;
  /** Hands a job to its queue; best effort. */
  handOff(job: DueJob): Promise<unknown>;
  readonly logger: Logger;
  /** How long an event waits for the request that it speaks of, ms. */
  readonly eventWaitMs: number;
  /** Failed applications after which the event is DEAD, with a ticket. */
  readonly maxFailures?: number;
  onOutcome?(outcome: ApplyOutcome): void;
}

/** What became of one application. `failed`: it is due again after a back-off; `dead`: a person has its ticket. */
export type ApplyOutcome = Application["kind"] | "failed" | "dead";

const defaultMaxFailures = 8;
const backoff = { baseMs: 2_000, maxMs: 300_000 };
/** Tries of a transaction that PostgreSQL has certainly rolled back, before that counts as a failure. */
const transactionTries = 3;

/** An event that can't be applied as it is: its adapter is missing here. */
export class ApplyError extends Error {
  override readonly name = "ApplyError";
  readonly code: string;
  readonly safeMessage: string;
  constructor(code: string) {
    super(code);
    this.code = code;
    this.safeMessage = code;
  }
}

/**
 * Applies one inbox row, as often as it is asked: a settled row is `gone`. An application that fails is counted on the
 * row and due again after a back-off, at last DEAD with a ticket. Rejects only when even that can't be recorded; the row
 * is still due then.
 */
export async function applyInboxEntry(
  parts: ApplyParts,
  row: { tenantId: string; inboxId: string },
): Promise<ApplyOutcome> {
  const startedAt = Date.now();
  const applied = await applyOrRecord(parts, row);
  parts.onOutcome?.(applied.outcome);
  reportApplied(parts, row, applied, startedAt);
  return applied.outcome;
}

interface Applied {
  readonly outcome: ApplyOutcome;
  readonly connection?: string;
  /** Whose request it speaks of, where that is known. */
  readonly operation?: string | undefined;
}

async function applyOrRecord(parts: ApplyParts, row: { tenantId: string; inboxId: string }): Promise<Applied> {
  let failures = 0;
  try {
    const entry = await openInboxEntry(parts.ledger, row.tenantId, row.inboxId);
    if (entry === undefined) return { outcome: "gone" };
    failures = entry.failures;
    return { connection: entry.connectionId, ...(await applyEntry(parts, entry)) };
  } catch (error) {
    return { outcome: await recordFailure(parts, row, failures, error) };
  }
}

/** One line and one span: in the operation's trace where it is known, linked to the trace of the delivery. */
function reportApplied(
  parts: ApplyParts,
  { tenantId: tenant, inboxId: event }: { tenantId: string; inboxId: string },
  { outcome, connection, operation }: Applied,
  startedAt: number,
): void {
  const facts = {
    tenant,
    event,
    ...(connection === undefined ? {} : { connection }),
    ...(operation === undefined ? {} : { operation }),
    outcome,
    ms: Date.now() - startedAt,
  };
  if (outcome !== "gone") parts.logger.info(facts, "event applied");
  const related = operation === undefined ? [] : [event];
  recordSpan({ name: "webhook.apply", of: operation ?? event, related, startedAt, facts });
}

async function applyEntry(
  parts: ApplyParts,
  entry: InboxEntry,
): Promise<{ outcome: ApplyOutcome; operation?: string | undefined }> {
  const contract = parts.providerByName(entry.provider)?.webhooks[entry.scheme];
  if (contract === undefined) throw new ApplyError("scheme-unknown");
  // Verified when it came in; the headers were needed for that alone and are not kept.
  const event = contract.parse(entry.body, {}, entry.providerEventId);
  if ("uninterpretable" in event) return { outcome: await quarantine(parts.ledger, entry, event.reason) };
  const result = await retried(() => applyEvent(parts.ledger, toApply(parts, contract, entry, event)));
  if (result.kind !== "gone" && result.evidenceFor !== undefined) {
    await lookAtOnce(parts, entry.tenantId, result.evidenceFor);
  }
  return {
    outcome: result.kind,
    ...(result.kind === "gone" ? {} : { operation: result.evidenceFor ?? result.operationId }),
  };
}

function toApply(parts: ApplyParts, contract: WebhookContract, entry: InboxEntry, event: SigningEvent) {
  return {
    tenantId: entry.tenantId,
    inboxId: entry.inboxId,
    connectionId: entry.connectionId,
    providerRef: event.ref,
    ...(event.status === undefined ? {} : { status: signingStatusOf[event.status] }),
    ...ownOperation(event, entry.tenantId),
    hint: entry.hint || isHint(contract, event.weakId === true),
    eventType: event.type,
    eventWaitMs: parts.eventWaitMs,
    waitPassed: entry.waitUntilPassed,
    unread: entry.unread,
  };
}

async function retried<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const state = sqlState(error);
      if (tries >= transactionTries || state === undefined || !certainlyRolledBack.has(state)) throw error;
    }
  }
}

/** Stored, interpretable once and no longer: left for a person, like what could not be interpreted at the door. */
async function quarantine(ledger: Ledger, entry: InboxEntry, reason: string): Promise<ApplyOutcome> {
  const settled = await ledger.sql.begin((sql) => quarantineInbox(sql, entry, reason));
  return settled ? "quarantined" : "gone";
}

/** An event that shows a request of an UNKNOWN operation settles it: its look need not wait for the due loop. */
async function lookAtOnce(parts: ApplyParts, tenantId: string, operationId: string): Promise<void> {
  const operation = await getOperation(parts.ledger, tenantId, operationId);
  if (operation?.state !== "UNKNOWN") return;
  await parts.handOff({
    queue: "reconcile",
    tenantId,
    kind: "operation",
    subjectId: operationId,
    eventNo: operation.eventNo,
    dispatches: 0,
  });
}

async function recordFailure(
  parts: ApplyParts,
  row: { tenantId: string; inboxId: string },
  failures: number,
  error: unknown,
): Promise<ApplyOutcome> {
  const { code, type } = safeError(error);
  const reason = String(code ?? type);
  parts.logger.warn({ err: error, tenant: row.tenantId, event: row.inboxId, reason }, "event could not be applied");
  const status = await recordApplyFailure(parts.ledger, row, reason, {
    maxFailures: parts.maxFailures ?? defaultMaxFailures,
    backoffMs: backoffMs(failures + 1, backoff),
  });
  if (status === undefined) return "gone";
  if (status !== "DEAD") return "failed";
  parts.logger.error({ tenant: row.tenantId, event: row.inboxId, reason }, "event given up: it has a ticket");
  return "dead";
}
