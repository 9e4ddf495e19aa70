import {
  absentAndRefused,
  absentOnce,
  absentSoPlanned,
  absentSoSuperseded,
  confirmFound,
  conflict,
  declinedSoPlanned,
  declinedSoSuperseded,
  draftContinued,
  guardStates,
  inconclusive,
  type Outcome,
  recordEvidence,
  recordNearMiss,
  refusedByAll,
  replaySafe,
  sqlState,
} from "@countersign/ledger";
import { meansSent, signingStatusOf } from "@countersign/provider";
import { backoffMs } from "@countersign/runtime";
import type { PassState } from "./pass-state.js";
import { told } from "./told.js";
import type { Verdict } from "./verdict.js";

function input(pass: PassState, verdict: Verdict, reason: string, settledBy?: string) {
  return {
    tenantId: pass.row.tenant_id,
    operationId: pass.row.operation_id,
    owner: pass.owner,
    evidenceNo: pass.row.evidence_no,
    beganAt: pass.beganAt,
    ...(pass.lookedAt === undefined ? {} : { lookedAt: pass.lookedAt }),
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
      return await applyReview(pass, verdict);
    case "replay":
      return await applyReplay(pass, verdict);
    case "continue": {
      const found = await rememberMatches(pass);
      if (found === undefined) return await wait(pass, verdict, "newer-evidence", 0);
      const common = { ...input(found, verdict, verdict.reason, "lookup"), draftRef: verdict.ref };
      return await sendAgain(found, verdict, await draftContinued(pass.ledger, common), 0);
    }
    case "closed":
      return await applyClosed(pass, verdict);
    case "absent":
      return await applyAbsent(pass, verdict, nextLookMs);
    case "wait":
      return await wait(pass, verdict, verdict.reason, Math.max(verdict.retryAfterMs ?? 0, nextLookMs()));
  }
}

/** A person needs every reference that was found: each is stored as evidence first, and the verdict made on that. */
async function applyReview(pass: PassState, verdict: Extract<Verdict, { kind: "review" }>): Promise<string> {
  const found = await rememberMatches(pass);
  if (found === undefined) return await wait(pass, verdict, "newer-evidence", 0);
  return await settle(found, verdict, await conflict(pass.ledger, input(found, verdict, verdict.reason, "review")));
}

/**
 * Stores what the lookup found beyond what is on record. The pass goes on with the evidence number that its own writes
 * returned; undefined where somebody else's evidence came between.
 */
async function rememberMatches(pass: PassState): Promise<PassState | undefined> {
  const { lookup } = pass.evidence;
  if (pass.row.action !== "SEND" || lookup?.result.kind !== "found") return pass;
  const known = new Set(pass.evidence.references.map(({ ref }) => ref));
  let evidenceNo = pass.row.evidence_no;
  // Lists run from new to old: the first that was made is the first on record.
  for (const match of lookup.result.matches.toReversed()) {
    if (known.has(match.ref)) continue;
    const recorded = await recordEvidence(pass.ledger.sql, {
      tenantId: pass.row.tenant_id,
      operationId: pass.row.operation_id,
      providerRef: match.ref,
      role: meansSent(match.status) ? "evidence" : "draft",
      source: "lookup",
      signingStatus: signingStatusOf[match.status],
      actor: "reconcile-worker",
      reason: "found-by-lookup",
      details: { status: match.status },
    });
    if (recorded?.evidenceNo !== evidenceNo + 1) return undefined;
    evidenceNo = recorded.evidenceNo;
  }
  return { ...pass, row: { ...pass.row, evidence_no: evidenceNo } };
}

/** The same key and bytes go out again by a submit worker's claim; counted as an attempt like every other. */
async function applyReplay(pass: PassState, verdict: Extract<Verdict, { kind: "replay" }>): Promise<string> {
  const planned = await replaySafe(pass.ledger, {
    ...input(pass, verdict, verdict.reason, "review"),
    quiescenceMs: verdict.quiescenceMs,
    replayWithinMs: verdict.untilMs,
  });
  if (
    planned.applied ||
    planned.found?.leaseOwner !== pass.owner ||
    planned.found.evidenceNo !== pass.row.evidence_no
  ) {
    return await sendAgain(pass, verdict, planned, 0);
  }
  // The lease of the last attempt still runs, or it waits for others: later.
  return await wait(pass, verdict, "replay-not-yet", pass.backoff.maxMs);
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
  const mayWait = pass.evidence.lastObservation?.kind === "not-sent";
  const dueMs = mayWait ? backoffMs(pass.row.attempt_no, pass.backoff) : 0;
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
  await noteStaleVerdict(pass, verdict);
  if (outcome.found?.leaseOwner !== pass.owner) return outcome.found?.state ?? "missing";
  return await wait(pass, verdict, "newer-evidence", 0);
}

/** The guard worked: a verdict made on old evidence changed nothing. */
async function noteStaleVerdict(pass: PassState, verdict: Verdict): Promise<void> {
  const { tenant_id: tenantId, operation_id: operationId, attempt_no: attemptNo } = pass.row;
  pass.nearMiss?.("stale-verdict");
  await recordNearMiss(pass.ledger, {
    tenantId,
    operationId,
    kind: "stale-verdict",
    attemptNo,
    actor: "reconcile-worker",
    details: { verdict: verdict.kind },
  });
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
