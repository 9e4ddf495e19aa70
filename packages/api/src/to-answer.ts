import type { OperationAnswer } from "@countersign/client";
import {
  explain,
  type HistoryLine,
  type InboxEvent,
  type NearMiss,
  type OperationView,
  type StoredReference,
  type Ticket,
  toIso,
  userMessage,
} from "@countersign/ledger";

const iso = (instant: string | null): string | null => (instant === null ? null : toIso(instant));

/** An operation as the API answers it. Without its history, `because` is empty: lists leave it to the single read. */
export function toAnswer(
  operation: OperationView,
  history?: readonly HistoryLine[],
  nearMisses?: readonly NearMiss[],
): OperationAnswer {
  const explanation = explain(operation, history ?? [], nearMisses ?? []);
  return {
    operationId: operation.operationId,
    intentKey: operation.intentKey,
    action: operation.action,
    connection: operation.connectionId,
    state: operation.state,
    reason: operation.reason,
    sent: explanation.sent,
    because: explanation.because,
    nextLookAt: explanation.nextLookAt,
    userMessage: userMessage(operation),
    providerRef: operation.providerRef,
    signingStatuses: operation.signingStatuses,
    attempts: operation.attemptNo,
    waitsFor: operation.openDependencies,
    target: operation.targetOperationId,
    supersedes: operation.supersedes,
    supersededBy: operation.supersededBy,
    basis: operation.basis,
    cause: operation.cause,
    evidenceNo: operation.evidenceNo,
    archive: operation.archivedSha256 === null ? null : { sha256: operation.archivedSha256 },
    requestedBy: operation.requestedBy,
    approvedBy: operation.approvedBy,
    createdAt: toIso(operation.createdAt),
    updatedAt: toIso(operation.updatedAt),
    finishedAt: iso(operation.finishedAt),
    ...(history === undefined ? {} : { history: history.map(toLine) }),
    ...(nearMisses === undefined
      ? {}
      : {
          nearMisses: nearMisses.map((miss) => ({
            kind: miss.kind,
            at: toIso(miss.at),
            attempt: miss.attemptNo,
            actor: miss.actor,
          })),
        }),
  };
}

/** A reference as the API answers it. */
export const toReference = ({ providerRef, role, status }: StoredReference) => ({
  reference: providerRef,
  role,
  status,
});

/** A ticket as the API answers it. */
export const toTicket = (each: Ticket) => ({
  ...each,
  openedAt: toIso(each.openedAt),
  dueAt: toIso(each.dueAt),
  resolvedAt: iso(each.resolvedAt),
});

/** A webhook event as the API answers it. */
export const toInboxEvent = (event: InboxEvent) => ({
  inboxId: event.inboxId,
  connection: event.connectionId,
  endpoint: event.endpointId,
  eventId: event.providerEventId,
  type: event.eventType,
  reference: event.providerRef,
  operationId: event.operationId,
  status: event.status,
  reason: event.outcome,
  hint: event.hint,
  weakId: event.weakId,
  conflicting: event.conflicting,
  failures: event.failures,
  replays: event.replays,
  replayedBy: event.replayedBy,
  discardedBy: event.discardedBy,
  discardReason: event.discardReason,
  receivedAt: toIso(event.receivedAt),
  appliedAt: iso(event.appliedAt),
  dueAt: iso(event.dueAt),
  hasBody: event.hasBody,
});

const toLine = (line: HistoryLine) => ({
  seq: line.seq,
  at: toIso(line.at),
  kind: line.kind,
  from: line.fromState,
  to: line.toState,
  reason: line.reason,
  actor: line.actor,
  attempt: line.attemptNo,
  evidence: line.evidence,
});
