export { openAgedTickets } from "./aged.js";
export { type ListedApiKey, listApiKeys, revokeApiKey } from "./api-keys.js";
export { applyEvent, type EventToApply } from "./apply-event.js";
export { type OpenedRequest, openApproved, openPayload } from "./approved.js";
export { type Audited, openDuplicateTicket, orphanDrafts, readForAudit, recordAudit } from "./audit.js";
export { eraseOldBodies } from "./bodies.js";
export { type CircuitLimits, halfOpen, noteProviderDown, noteProviderUp } from "./circuit.js";
export { type Companion, dueForLookup } from "./companions.js";
export {
  type Connection,
  createConnection,
  listConnections,
  type NewConnection,
  openConnection,
  pauseConnection,
  recordLookupVerification,
  resumeConnection,
  setCredential,
  setMetadataLookup,
  setRate,
} from "./connections.js";
export {
  beginConsoleAction,
  type ConsoleAction,
  endConsoleAction,
  listConsoleActions,
  type NewConsoleAction,
} from "./console-actions.js";
export {
  addOperator,
  type ConsoleOperator,
  listOperators,
  operatorById,
  operatorByToken,
  operatorRoles,
  revokeOperator,
} from "./console-operators.js";
export { type AnySql, Ledger, type LedgerOptions, type Sql, type TransactionSql } from "./database.js";
export { type DatabaseFacts, readDatabaseFacts } from "./database-facts.js";
export { type DocumentStore, postgresDocumentStore } from "./documents.js";
export {
  type DueJob,
  type DueQueue,
  makeDueAgain,
  postpone,
  raiseGeneration,
  reportPoisoned,
  type SweptJob,
  sweepDeadWorkers,
  sweepExpiredLeases,
  visitDueInbox,
  visitDueOperations,
  visitDueWork,
} from "./due.js";
export { type DuplicateDecided, type DuplicateDecision, decideDuplicate } from "./duplicates.js";
export type { Edge, TransitionInput } from "./edge-types.js";
export { type EdgeName, edges, legalPairs } from "./edges.js";
export {
  createWebhookEndpoint,
  type Endpoint,
  type EndpointSecret,
  type EndpointView,
  type GzipRule,
  listEndpoints,
  openAllSecrets,
  openEndpoint,
  retireSecret,
  rotateSecret,
  setEndpointDisabled,
} from "./endpoints.js";
export {
  certainlyRolledBack,
  DecryptionError,
  type Disposition,
  guardStates,
  LedgerError,
  NotFoundError,
  PlanRefusedError,
  sqlState,
} from "./errors.js";
export { type Evidence, type EvidenceRecorded, evidenceEffects, recordEvidence } from "./evidence.js";
export { type Explanation, explain, userMessage } from "./explain.js";
export { type LedgerGauges, type ReadyWork, readGauges } from "./gauges.js";
export { type Approved, differingParts, type PayloadHash, payloadHash, type Target } from "./hash.js";
export { beat, type ProcessIdentity, sayGoodbye } from "./heartbeat.js";
export { type Hold, holdSending, listHolds, releaseHold } from "./holds.js";
export {
  type Delivery,
  type InboxEntry,
  openInboxEntry,
  type Recorded,
  recordDeliveries,
  recordDelivery,
} from "./inbox.js";
export { discardInbox, replayable, replayInbox } from "./inbox-decide.js";
export {
  getInboxEvent,
  type InboxEvent,
  type InboxFilter,
  type InboxState,
  inboxStatuses,
  listEventsOf,
  listInbox,
  type ReplayCandidate,
  readInboxBody,
  replayCandidates,
} from "./inbox-read.js";
export { type InboxRow, quarantineInbox, recordApplyFailure, settleInbox } from "./inbox-settle.js";
export { Keyring } from "./keyring.js";
export { type LegalHold, listLegalHolds, placeLegalHold, releaseLegalHold } from "./legal-holds.js";
export { migrate, migrationState } from "./migrate.js";
export { getNearMisses, type NearMiss, type NearMissKind, nearMissKinds, recordNearMiss } from "./near-miss.js";
export { normaliseAddress, normalisePayload } from "./normalise.js";
export { type PauseStanding, pauseByPerson } from "./operator-pause.js";
export {
  countOpenTickets,
  countStates,
  listStandstills,
  listTenantIds,
  movesOfLastHour,
  oldestOpen,
  type StateCount,
  type TenantScope,
} from "./overview.js";
export { takePermits } from "./permits.js";
export {
  type Plan,
  type PlannedOperation,
  type PlanOutcome,
  plan,
  planInside,
  type VoidRequest,
} from "./plan.js";
export {
  isPolicyName,
  listPolicies,
  type Policy,
  type PolicyName,
  policies,
  policyInForce,
  revokePolicy,
  writePolicy,
} from "./policies.js";
export {
  applyPolled,
  catchUp,
  type PollApplied,
  type Polled,
  type PollSubject,
  pollAbout,
  readPoll,
  schedulePolls,
} from "./polls.js";
export {
  countByState,
  getHistory,
  getOperation,
  getOperations,
  getReferences,
  type HistoryLine,
  listOperations,
  type OperationFilter,
  type OperationView,
  toIso,
} from "./read.js";
export { getRelated, type RelatedOperation } from "./related.js";
export { type ReleaseRule, releaseRules } from "./relations.js";
export { isOwnSend, type RequestStanding, readStanding } from "./request-standing.js";
export { type Retained, type RetentionOptions, runRetention } from "./retention.js";
export { type Review, type Reviewed, review } from "./review.js";
export type { DependantsDecision } from "./review-dependants.js";
export { type Found, type Search, type SearchKind, searchOperations } from "./search.js";
export { type Sent, sent } from "./sent.js";
export { readSigning, type SigningKey, type SigningRow, signingStatusOf } from "./signing.js";
export {
  effectOf,
  endStatuses,
  movesFrom,
  openStatuses,
  type SigningStatus,
  type StoryEffect,
  signingStatuses,
} from "./signing-table.js";
export { ingressKind, noteIngressGap, reportSilence, type Silence, type SilenceReason } from "./silence.js";
export { finalStates, isFinal, isResolved, leasedStates, type State, states } from "./state.js";
export { documentToken, signerToken, subjectTokens } from "./subjects.js";
export { tally } from "./tally.js";
export type { Application } from "./tell-event.js";
export { type ListedTenant, listTenants, setThresholds, setTicketOwners } from "./tenant-settings.js";
export {
  type ApiScope,
  apiScopes,
  authenticate,
  type Caller,
  createApiKey,
  createTenant,
  getTenant,
  type NewTenant,
  producerScopes,
} from "./tenants.js";
export {
  closeTicket,
  defaultThresholds,
  getTicket,
  listTickets,
  type NewTicket,
  openTicket,
  resolveTicket,
  type ThresholdName,
  type Ticket,
  type TicketKind,
  ticketKinds,
} from "./tickets.js";
export * from "./transitions.js";
export { isOver, isUnsent, type KnownReference as StoredReference, knownReferences } from "./void-references.js";
export { type Waiter, waitersOf } from "./waiters.js";
export { claimWork, finishWork, postponeWork, type WorkItem, type WorkKind } from "./work.js";
