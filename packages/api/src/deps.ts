import type { PlanningParts } from "@countersign/client/transaction";
import type { ApiScope, Caller, DocumentStore, DueJob, Ledger } from "@countersign/ledger";
import type { Check, Logger, Metrics } from "@countersign/runtime";
import type { FastifyRequest } from "fastify";
import type { Waiting } from "./wait.js";

/** What the routes work with, whoever serves them. */
export interface ApiDeps {
  ledger: Ledger;
  documents: DocumentStore;
  planning: PlanningParts;
  /** Who calls, for which tenant; throws a {@link ProblemError} where they may not. */
  authenticate(request: FastifyRequest, scope: ApiScope): Promise<Caller>;
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
