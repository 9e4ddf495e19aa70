import {
  type ClaimedRow,
  confirm,
  findState,
  guardStates,
  markUnknown,
  type Outcome,
  pauseConnection,
  recordEvidence,
  refuse,
  refuseReplay,
  sqlState,
  type TransitionInput,
  voidRefused,
} from "@countersign/ledger";
import type { Observation } from "@countersign/provider";
import { backoffMs } from "@countersign/runtime";
import type { SubmitDeps } from "./submit-operation.js";
import { jobOf } from "./submit-operation.js";

interface Recording {
  deps: SubmitDeps;
  row: ClaimedRow;
  owner: string;
  observation: Observation;
  base: TransitionInput & { owner: string; observation: object };
}

/** Waits between tries to write a result whose commit went unanswered, ms; all inside the lease. */
const writeAgainAfterMs = [50, 200, 1_000, 2_000, 5_000];

/** How often a target that is not complete is read again, ms. */
const defaultPollMs = 900_000;

/** Nothing left this house: how long until it is tried again, by attempt. */
const notSentBackoff = { baseMs: 500, maxMs: 60_000 };

/**
 * Writes what an attempt proved, under its fence. An unanswered commit is written again by the same fenced UPDATE; zero
 * rows means look; once the lease is another's, the result is kept as evidence (DESIGN §12.3). Returns the state.
 */
export async function recordObservation(
  deps: SubmitDeps,
  row: ClaimedRow,
  owner: string,
  observation: Observation,
  facts: { ms: number; nearMiss: boolean },
): Promise<string> {
  const { kind, ...details } = observation;
  const recording: Recording = {
    deps,
    row,
    owner,
    observation,
    base: {
      tenantId: row.tenant_id,
      operationId: row.operation_id,
      owner,
      evidenceNo: row.evidence_no,
      observation: { kind, ...withoutReference(details), attempt: row.attempt_no },
      actor: "submit-worker",
      reason: facts.nearMiss ? "near-miss" : kind,
      evidence: { observation: kind, ...withoutReference(details), ms: facts.ms },
    },
  };
  for (const wait of [...writeAgainAfterMs, undefined]) {
    try {
      return await record(recording);
    } catch (error) {
      if (wait === undefined || sqlState(error) === guardStates.referenceOfAnotherOperation) throw error;
      deps.logger.warn(
        {
          err: error,
          tenant: row.tenant_id,
          operation: row.operation_id,
          attempt: row.attempt_no,
          outcome: observation.kind,
        },
        "result not stored: written again",
      );
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  return "unrecorded";
}

/** Nobody has been mailed for what is only staged: its reference never counts as a send. */
function roleOf(observation: Observation): "draft" | "evidence" {
  const status = "recordStatus" in observation ? observation.recordStatus : undefined;
  return status === "staged" || status === "draft" ? "draft" : "evidence";
}

/** A FINALIZE changes nothing at the provider: whatever became of it, nothing of it is left there. */
const onlyRead = (row: ClaimedRow): boolean => row.action === "FINALIZE";

/** References stay in their own table: history holds codes, counts and timings. */
function withoutReference(details: object): object {
  return Object.fromEntries(Object.entries(details).filter(([name]) => name !== "ref" && name !== "archivedSha256"));
}

async function record(recording: Recording): Promise<string> {
  const { deps, observation, row } = recording;
  switch (observation.kind) {
    case "accepted":
      return row.action === "VOID" ? voidAccepted(recording, observation) : confirmAccepted(recording, observation);
    case "queued":
      return unknown(recording, {
        providerRef: observation.ref,
        referenceRole: roleOf(observation),
        referenceSource: "queued",
        shows: row.action === "SEND",
        raises: true,
        doubts: true,
      });
    case "refused":
      return refused(recording);
    case "declined":
      return declined(recording, observation);
    case "conflict":
      return unknown(recording, onlyRead(row) ? { closes: true } : { raises: true, doubts: true });
    case "not-yet":
      // Only read: the reconciler goes on looking and sends it again once the target is complete.
      return unknown(recording, { closes: true, dueMs: observation.retryAfterMs ?? deps.pollMs ?? defaultPollMs });
    case "not-sent":
      return unknown(recording, {
        closes: true,
        dueMs: backoffMs(row.attempt_no, notSentBackoff),
      });
    case "ambiguous":
      if (onlyRead(row)) {
        return unknown(recording, {
          closes: true,
          dueMs: observation.retryAfterMs ?? backoffMs(row.attempt_no, notSentBackoff),
        });
      }
      return unknown(recording, { raises: true, doubts: true, dueMs: observation.retryAfterMs ?? 0 });
  }
}

type Accepted = Extract<Observation, { kind: "accepted" }>;

/** 2xx with a reference. Evidence that overtook it makes the confirm miss: same answer, decided again at once. */
async function confirmAccepted(recording: Recording, accepted: Accepted): Promise<string> {
  const { deps, row, owner, base } = recording;
  const staged = accepted.recordStatus === "staged" || accepted.recordStatus === "draft";
  let evidenceNo = row.evidence_no;
  for (;;) {
    let outcome: Outcome | undefined;
    try {
      [outcome] = await confirm(deps.ledger, [
        {
          ...base,
          evidenceNo,
          observation: base.observation,
          providerRef: accepted.ref,
          referenceSource: "answer",
          basis: "proof",
          shows: row.action === "SEND",
          reason: "accepted",
          ...(accepted.archivedSha256 === undefined ? {} : { archivedSha256: accepted.archivedSha256 }),
          ...(row.action === "SEND" ? { signingStatus: staged ? "STAGED" : "SENT" } : {}),
        },
      ]);
    } catch (error) {
      if (sqlState(error) !== guardStates.referenceOfAnotherOperation) throw error;
      return unknown(recording, { raises: true, doubts: true, reason: "reference-of-another-operation" });
    }
    if (outcome?.applied === true) return outcome.row.state;
    const found = outcome?.found;
    if (found?.leaseOwner !== owner) return late(recording);
    evidenceNo = found.evidenceNo;
  }
}

/** A VOID's 2xx counts only where it is the provider's own record and the capability calls that authoritative. */
async function voidAccepted(recording: Recording, accepted: Accepted): Promise<string> {
  const { deps, row, base } = recording;
  const connection = await deps.connection(row.tenant_id, row.connection_id);
  const capability = deps.provider(connection.provider)?.capabilities[row.action];
  if (capability?.answerIsAuthoritative !== true || accepted.recordStatus !== "withdrawn") {
    return unknown(recording, { raises: true, doubts: true, reason: "accepted-not-yet-seen" });
  }
  const [outcome] = await confirm(deps.ledger, [
    {
      ...base,
      evidenceNo: row.evidence_no,
      providerRef: row.target_ref ?? accepted.ref,
      basis: "proof",
      cause: "ours",
      signingStatus: "VOIDED",
      reason: "accepted",
    },
  ]);
  return outcome?.applied === true
    ? outcome.row.state
    : unknown(recording, { raises: true, doubts: true, reason: "accepted-not-yet-seen" });
}

/** Definitive for this attempt; final only if every earlier one is proven absent. */
async function refused(recording: Recording): Promise<string> {
  const { deps, base, row } = recording;
  const input = { ...base, evidenceNo: row.evidence_no, reason: "refused" };
  const failed = await refuse(deps.ledger, input);
  if (failed.applied) return failed.row.state;
  if (row.replaying && (await refusalProvesAbsence(recording))) {
    const replay = await refuseReplay(deps.ledger, { ...input, reason: "replay-refused" });
    if (replay.applied) return replay.row.state;
  }
  if (row.action === "VOID") {
    const review = await voidRefused(deps.ledger, { ...input, reason: "void-refused" });
    if (review.applied) return review.row.state;
  }
  return unknown(recording, { closes: true, reason: "refused" });
}

/** Only where errors are known to roll back does a refused replay say that no earlier attempt was committed. */
async function refusalProvesAbsence({ deps, row }: Recording): Promise<boolean> {
  const connection = await deps.connection(row.tenant_id, row.connection_id);
  const idempotency = deps.provider(connection.provider)?.capabilities[row.action].idempotency;
  return idempotency?.kind === "keyed" && idempotency.replaySafe;
}

type Declined = Extract<Observation, { kind: "declined" }>;

const defaultRetryAfterMs = 60_000;

/** The connection, not the payload: it is paused, so that a thousand operations don't each learn it. */
async function declined(recording: Recording, observation: Declined): Promise<string> {
  const { deps, row } = recording;
  const retryAfterMs = observation.retryAfterMs ?? defaultRetryAfterMs;
  const untilResumed = observation.reason !== "rate-limited";
  await pauseConnection(
    deps.ledger,
    row.tenant_id,
    row.connection_id,
    observation.reason,
    untilResumed ? undefined : retryAfterMs,
  );
  return unknown(recording, { closes: true, dueMs: retryAfterMs });
}

async function unknown(recording: Recording, more: Partial<TransitionInput>): Promise<string> {
  const { deps, row, base } = recording;
  const outcome = await markUnknown(deps.ledger, {
    ...base,
    ...more,
    owner: base.owner,
    observation: base.observation,
  });
  if (!outcome.applied) return late(recording);
  if ((more.dueMs ?? 0) === 0) {
    await deps.handOver([jobOf(outcome.row.event_no, "reconcile", row.tenant_id, row.operation_id)]);
  }
  return outcome.row.state;
}

/** The lease is another's: the result changes nothing by itself, and is kept as evidence. */
async function late(recording: Recording): Promise<string> {
  const { deps, row, observation, base } = recording;
  const found = await findState(deps.ledger.sql, row.tenant_id, row.operation_id);
  // Our own earlier write did land, only its answer was lost.
  if (found?.state === "CONFIRMED" && observation.kind === "accepted" && found.attemptNo === row.attempt_no) {
    return found.state;
  }
  const recorded = await recordEvidence(deps.ledger.sql, {
    tenantId: row.tenant_id,
    operationId: row.operation_id,
    attemptNo: row.attempt_no,
    ...(observation.kind === "accepted" || observation.kind === "queued" ? { providerRef: observation.ref } : {}),
    role: roleOf(observation),
    source: "late-answer",
    observation: { ...base.observation, kind: observation.kind },
    closesAttempt:
      observation.kind === "refused" ||
      observation.kind === "declined" ||
      observation.kind === "not-sent" ||
      observation.kind === "not-yet",
    actor: "submit-worker",
    reason: "late-answer",
    details: { observation: observation.kind },
  });
  if (recorded === undefined) return found?.state ?? "missing";
  if (recorded.state === "UNKNOWN") {
    await deps.handOver([jobOf(recorded.eventNo, "reconcile", row.tenant_id, row.operation_id)]);
  }
  return recorded.state;
}
