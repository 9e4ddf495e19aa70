import type { TransitionRow } from "@countersign/ledger";
import type { ReconcileDeps } from "./reconcile-deps.js";
import type { Capabilities, Clock, EvidenceFound } from "./verdict.js";

/** Everything that a pass knows when it writes its verdict. */
export interface PassState extends ReconcileDeps {
  row: TransitionRow;
  owner: string;
  /** Database time before the look began. */
  beganAt: string;
  /** The same, where the provider was asked. */
  lookedAt?: string;
  clock: Clock;
  capabilities: Capabilities;
  evidence: EvidenceFound;
}
