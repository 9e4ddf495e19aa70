import type { PlanningParts } from "@countersign/client/transaction";
import type { ApiScope, Caller, DocumentStore, DueJob, Ledger } from "@countersign/ledger";
import type { Check, Logger, Metrics } from "@countersign/runtime";
import type { Waiting } from "./wait.js";

/** What the routes work with. */
export interface EnqueuerDeps {
  ledger: Ledger;
  documents: DocumentStore;
  planning: PlanningParts;
  authenticate(header: string | undefined, scope: ApiScope): Promise<Caller>;
  waiting: Waiting;
  /** Hands jobs over after the commit; never awaited for an answer. */
  handOver(jobs: DueJob[]): void;
  checks: readonly Check[];
  logger: Logger;
  metrics: Metrics;
  maxDocumentBytes: number;
  /** No review is decided before the last attempt's end plus this, ms. */
  quiescenceMs: number;
}
