export {
  type Capabilities,
  type Clock,
  decide,
  type EvidenceFound,
  type KnownReference,
  type SettledBy,
  type Verdict,
} from "./decide.js";
export { type ReconcileDeps, type ReconcileOutcome, reconcileOperation } from "./reconcile-operation.js";
