export type { AuditReport, AuditTotals, OperationAudit } from "./audit.js";
export { NotIdleError } from "./clock.js";
export { type FaultPatch, type SimulatorConfig, SimulatorConfigError, type SimulatorOptions } from "./config.js";
export {
  ALL_FAULTS,
  type Endpoint,
  type FaultKind,
  LOOKUP_FAULTS,
  type LookupFault,
  MUTATION_FAULTS,
  type MutationFault,
  SCRIPTED_ONLY_FAULTS,
  WEBHOOK_FAULTS,
  type WebhookFault,
} from "./fault-kinds.js";
export type { ScriptedFaultInput } from "./fault-plan.js";
export { plainPdf } from "./sealed-document.js";
export type { RequestStatus } from "./signing-request.js";
export { type RunningSimulator, startSimulator } from "./start.js";
export { ATTEMPT_DELAYS_MS, signatureHeader } from "./webhooks.js";
