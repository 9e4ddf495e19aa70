export { type OpenedRequest, openApproved } from "./approved.js";
export {
  type Connection,
  createConnection,
  createWebhookEndpoint,
  type Endpoint,
  listConnections,
  type NewConnection,
  openConnection,
  openEndpoint,
  pauseConnection,
  recordLookupVerification,
  resumeConnection,
  setCredential,
  setMetadataLookup,
} from "./connections.js";
export { type AnySql, Ledger, type LedgerOptions, type Sql, type TransactionSql } from "./database.js";
export { type DocumentStore, postgresDocumentStore } from "./documents.js";
export {
  type DueJob,
  type DueQueue,
  makeDueAgain,
  postpone,
  raiseGeneration,
  reportPoisoned,
  sweepExpiredLeases,
  visitDueInbox,
  visitDueOperations,
} from "./due.js";
export type { Edge, TransitionInput } from "./edge-types.js";
export { type EdgeName, edges, legalPairs } from "./edges.js";
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
export { type Approved, differingParts, type PayloadHash, payloadHash, type Target } from "./hash.js";
export { beat, type ProcessIdentity, sayGoodbye } from "./heartbeat.js";
export {
  type Delivery,
  type InboxEntry,
  openInboxEntry,
  type Recorded,
  recordApplyFailure,
  recordDelivery,
  settleInbox,
} from "./inbox.js";
export { Keyring } from "./keyring.js";
export { migrate, migrationState } from "./migrate.js";
export { normaliseAddress, normalisePayload } from "./normalise.js";
export {
  type Plan,
  type PlannedOperation,
  type PlanOutcome,
  plan,
  planInside,
  type VoidRequest,
} from "./plan.js";
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
export { type ReleaseRule, releaseRules } from "./relations.js";
export { type Sent, sent } from "./sent.js";
export {
  type Application,
  applyEvent,
  type EventToApply,
  explainMiss,
  movesFrom,
  type SigningStatus,
  signingStatuses,
} from "./signing.js";
export { finalStates, isFinal, isResolved, leasedStates, type State, states } from "./state.js";
export {
  type ApiScope,
  apiScopes,
  authenticate,
  type Caller,
  createApiKey,
  createTenant,
  type NewTenant,
} from "./tenants.js";
export {
  listTickets,
  type NewTicket,
  openTicket,
  resolveTicket,
  type Ticket,
  type TicketKind,
  ticketKinds,
} from "./tickets.js";
export * from "./transitions.js";
