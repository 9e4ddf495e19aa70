export { decide } from "./decide.js";
export type { OpenConnection, ReconcileDeps } from "./reconcile-deps.js";
export { type ReconcileOutcome, reconcileOperation } from "./reconcile-operation.js";
export { runWork, type WorkOutcome } from "./run-work.js";
export type { Capabilities, Clock, EvidenceFound, KnownReference, SettledBy, Verdict } from "./verdict.js";
