import {
  absentAndRefused,
  absentOnce,
  absentSoPlanned,
  absentSoSuperseded,
  confirmFound,
  conflict,
  declinedSoPlanned,
  declinedSoSuperseded,
  guardStates,
  inconclusive,
  type Outcome,
  refusedByAll,
  type SigningStatus,
  sqlState,
  type TransitionRow,
} from "@countersign/ledger";
import type { ProviderStatus } from "@countersign/provider";
import { backoffMs } from "@countersign/runtime";
import type { EvidenceFound, Verdict } from "./decide.js";
import type { ReconcileDeps } from "./reconcile-operation.js";

export interface PassState extends ReconcileDeps {
  row: TransitionRow;
  owner: string;
  beganAt: string;
  clock: { sinceQuietMs: number };
  evidence: EvidenceFound;
}

const signingStatusOf: Record<ProviderStatus, SigningStatus> = {
  draft: "STAGED",
  staged: "STAGED",
  sent: "SENT",
  viewed: "VIEWED",
  "partially-signed": "PARTIALLY_SIGNED",
  completed: "COMPLETED",
  declined: "DECLINED",
  withdrawn: "VOIDED",
  expired: "EXPIRED",
};

/** What was asked, what was seen, how old the attempt was: stands in the history beside the verdict. No references. */
function told(pass: PassState, verdict: Verdict, settledBy?: string): object {
  const { lookup } = pass.evidence;
  return {
    verdict: verdict.kind,
    ...(settledBy === undefined ? {} : { settledBy }),
    asked: lookup?.by ?? "record",
    saw: lookup === undefined ? "nothing-asked" : lookup.result.kind,
    ...(lookup?.result.kind === "found"
      ? {
          matches: lookup.result.matches.length,
          statuses: lookup.result.matches.map((match) => match.status),
          pages: lookup.result.pages,
        }
      : {}),
    ...(lookup?.result.kind === "failed" ? { cause: lookup.result.cause } : {}),
    ...(lookup === undefined ? {} : { ms: Math.round(lookup.result.ms) }),
    sinceQuietMs: Math.round(pass.clock.sinceQuietMs),
    openAttempts: pass.evidence.openAttempts,
    references: pass.evidence.references.length,
  };
}

function input(pass: PassState, verdict: Verdict, reason: string, settledBy?: string) {
  return {
    tenantId: pass.row.tenant_id,
    operationId: pass.row.operation_id,
    owner: pass.owner,
    evidenceNo: pass.row.evidence_no,
    beganAt: pass.beganAt,
    quiescenceMs: pass.quiescenceMs,
    confirmations: pass.confirmations,
    spacingMs: pass.spacingMs,
    sendBeforeMs: pass.absenceMaxAgeMs,
    actor: "reconcile-worker",
    reason,
    evidence: told(pass, verdict, settledBy),
  };
}

/**
 * Writes a verdict. Each write is conditional on the owner token and the evidence that the verdict was made on; one that
 * misses means that newer evidence arrived, so the row goes back to UNKNOWN and is looked at again. Returns the state.
 */
export async function applyVerdict(pass: PassState, verdict: Verdict, nextLookMs: () => number): Promise<string> {
  switch (verdict.kind) {
    case "confirm":
      return await applyConfirm(pass, verdict);
    case "review":
      return await settle(pass, verdict, await conflict(pass.ledger, input(pass, verdict, verdict.reason, "review")));
    case "closed":
      return await applyClosed(pass, verdict);
    case "absent":
      return await applyAbsent(pass, verdict, nextLookMs);
    case "wait":
      return await wait(pass, verdict, verdict.reason, Math.max(verdict.retryAfterMs ?? 0, nextLookMs()));
  }
}

async function applyConfirm(pass: PassState, verdict: Extract<Verdict, { kind: "confirm" }>): Promise<string> {
  const send = pass.row.action === "SEND";
  const { lookup } = pass.evidence;
  const source = lookup === undefined ? "record" : "lookup";
  try {
    const outcome = await confirmFound(pass.ledger, {
      ...input(pass, verdict, verdict.reason, verdict.settledBy),
      providerRef: verdict.ref,
      referenceSource: source,
      basis: "proof",
      signingStatus: signingStatusOf[verdict.status],
      ...(send ? { shows: true } : {}),
      ...(verdict.cause === undefined ? {} : { cause: verdict.cause }),
    });
    return await settle(pass, verdict, outcome);
  } catch (error) {
    if (sqlState(error) !== guardStates.referenceOfAnotherOperation) throw error;
    const reason = "reference-of-another-operation";
    return await settle(pass, verdict, await conflict(pass.ledger, input(pass, verdict, reason, "review")));
  }
}

const wasRefused = (pass: PassState): boolean => pass.evidence.lastObservation?.kind === "refused";

/** Refusal wins over supersession, supersession over sending again. */
async function applyClosed(pass: PassState, verdict: Verdict): Promise<string> {
  const common = input(pass, verdict, verdict.reason, "declined");
  if (wasRefused(pass)) {
    const failed = await refusedByAll(pass.ledger, common);
    if (failed.applied) return failed.row.state;
    if (pass.row.action === "VOID")
      return await settle(pass, verdict, await conflict(pass.ledger, { ...common, reason: "void-refused" }));
  }
  if (pass.row.superseded_by !== null) {
    const superseded = await declinedSoSuperseded(pass.ledger, common);
    if (superseded.applied) return superseded.row.state;
  }
  const dueMs = pass.evidence.lastObservation?.kind === "not-sent" ? backoffMs(pass.row.attempt_no, pass.backoff) : 0;
  return await sendAgain(pass, verdict, await declinedSoPlanned(pass.ledger, { ...common, dueMs }), dueMs);
}

async function applyAbsent(pass: PassState, verdict: Verdict, nextLookMs: () => number): Promise<string> {
  const common = input(pass, verdict, verdict.reason, "lookup");
  if (wasRefused(pass)) {
    const failed = await absentAndRefused(pass.ledger, common);
    if (failed.applied) return failed.row.state;
  }
  if (pass.row.superseded_by !== null) {
    const superseded = await absentSoSuperseded(pass.ledger, common);
    if (superseded.applied) return superseded.row.state;
  } else if (!wasRefused(pass)) {
    const planned = await absentSoPlanned(pass.ledger, common);
    if (planned.applied) return await sendAgain(pass, verdict, planned, 0);
  }
  // Not enough looks yet, or too close together: this one counts if it may, and the next comes after the spacing.
  const once = await absentOnce(pass.ledger, { ...common, reason: "absence-counted", dueMs: pass.spacingMs });
  if (once.applied) return once.row.state;
  return await wait(pass, verdict, "absence-not-proven", nextLookMs());
}

async function sendAgain(pass: PassState, verdict: Verdict, outcome: Outcome, dueMs: number): Promise<string> {
  if (outcome.applied && dueMs === 0) {
    const { tenant_id: tenantId, operation_id: subjectId, event_no: eventNo } = outcome.row;
    await pass.handOver([{ queue: "submit", tenantId, kind: "operation", subjectId, eventNo, dispatches: 0 }]);
  }
  return await settle(pass, verdict, outcome);
}

/** A verdict that missed while the lease is ours: newer evidence arrived, look again at once. */
async function settle(pass: PassState, verdict: Verdict, outcome: Outcome): Promise<string> {
  if (outcome.applied) return outcome.row.state;
  if (outcome.found?.leaseOwner !== pass.owner) return outcome.found?.state ?? "missing";
  return await wait(pass, verdict, "newer-evidence", 0);
}

async function wait(pass: PassState, verdict: Verdict, reason: string, dueMs: number): Promise<string> {
  const outcome = await inconclusive(pass.ledger, { ...input(pass, verdict, reason), dueMs: Math.ceil(dueMs) });
  if (!outcome.applied) return outcome.found?.state ?? "missing";
  if (dueMs === 0) {
    const { tenant_id: tenantId, operation_id: subjectId, event_no: eventNo } = outcome.row;
    await pass.handOver([{ queue: "reconcile", tenantId, kind: "operation", subjectId, eventNo, dispatches: 0 }]);
  }
  return outcome.row.state;
}
