import { randomUUID } from "node:crypto";
import {
  type ClaimedRow,
  type Connection,
  claimForSubmit,
  type DocumentStore,
  type DueJob,
  findState,
  type Ledger,
  type OpenedRequest,
  openApproved,
  payloadChanged,
  postpone,
  recordEvidence,
  sendBeforePassed,
} from "@countersign/ledger";
import {
  assembleBody,
  documentsOf,
  type Observation,
  type PreparedRequest,
  type SignatureProvider,
} from "@countersign/provider";
import type { Logger } from "@countersign/runtime";
import { type Clocks, LeaseClock } from "./lease-clock.js";
import { preparedRequest } from "./prepared-request.js";
import { recordObservation } from "./record-observation.js";

export interface SubmitDeps {
  ledger: Ledger;
  documents: DocumentStore;
  provider(name: string): SignatureProvider | undefined;
  connection(tenantId: string, connectionId: string): Promise<Connection & { credential: string }>;
  /** Hands jobs of rows that became due to their queues; best effort. */
  handOver(jobs: DueJob[]): Promise<void>;
  logger: Logger;
  leaseMs: number;
  deadlineMs: number;
  marginMs: number;
  clocks?: Clocks;
  /** Told of what happened, for metrics. */
  observed?(what: { action: string; outcome: string; ms: number }): void;
  nearMiss?(): void;
}

export type SubmitOutcome =
  | { kind: "not-claimed"; found: string }
  | { kind: "payload-changed" }
  | { kind: "recorded"; observation: Observation["kind"]; state: string };

/** How old a claim may be, ms, before a first attempt re-reads its row too. */
const freshClaimMs = 250;

/**
 * The submit path (seeds/000 §3): claim, compare what is stored with what was approved, call once, record what that
 * proved. Whatever happens in between, the row says UNKNOWN at worst.
 */
export async function submitOperation(deps: SubmitDeps, tenantId: string, operationId: string): Promise<SubmitOutcome> {
  const clock = new LeaseClock({
    leaseMs: deps.leaseMs,
    marginMs: deps.marginMs,
    ...(deps.clocks === undefined ? {} : { clocks: deps.clocks }),
  });
  const owner = randomUUID();
  // If this commit goes unanswered no call is made: the error ends the job, and the sweeper finds the row.
  const [claim] = await claimForSubmit(deps.ledger, [
    {
      tenantId,
      operationId,
      owner,
      leaseMs: deps.leaseMs,
      actor: "submit-worker",
      reason: "claimed",
      evidence: { owner },
    },
  ]);
  if (claim === undefined || !claim.applied) return notClaimed(deps, tenantId, operationId);
  const attempt = new Attempt(deps, claim.row, owner, clock);
  return await attempt.run();
}

/** Zero rows: stop. What stood in the way decides only when somebody looks next. */
async function notClaimed(deps: SubmitDeps, tenantId: string, operationId: string): Promise<SubmitOutcome> {
  const found = await findState(deps.ledger.sql, tenantId, operationId);
  if (found?.state !== "PLANNED") return { kind: "not-claimed", found: found?.state ?? "missing" };
  if (found.sendBeforePassed) {
    const moved = await sendBeforePassed(deps.ledger, {
      tenantId,
      operationId,
      actor: "submit-worker",
      reason: "absence-proof-aged",
    });
    if (moved.applied) await deps.handOver([jobOf(moved.row.event_no, "reconcile", tenantId, operationId)]);
  } else if (found.waitMs > 0 || found.held) {
    await postpone(deps.ledger, {
      tenantId,
      operationId,
      state: "PLANNED",
      waitMs: found.held ? 60_000 : found.waitMs,
    });
  }
  return { kind: "not-claimed", found: "PLANNED" };
}

export const jobOf = (eventNo: number, queue: DueJob["queue"], tenantId: string, subjectId: string): DueJob => ({
  queue,
  tenantId,
  kind: "operation",
  subjectId,
  eventNo,
  dispatches: 0,
});

/** One attempt under one lease. */
class Attempt {
  readonly #deps: SubmitDeps;
  readonly #row: ClaimedRow;
  readonly #owner: string;
  readonly #clock: LeaseClock;
  #refusedToWrite = false;

  constructor(deps: SubmitDeps, row: ClaimedRow, owner: string, clock: LeaseClock) {
    this.#deps = deps;
    this.#row = row;
    this.#owner = owner;
    this.#clock = clock;
  }

  async run(): Promise<SubmitOutcome> {
    const row = this.#row;
    const opened = await openApproved(this.#deps.ledger, row);
    if (opened.kind === "changed") return await this.#changed(opened.what);
    if (opened.kind === "unreadable") return await this.#record({ kind: "not-sent", cause: opened.cause }, 0);
    const request = preparedRequest(opened.request);
    if (request === undefined) return await this.#changed("request");
    const fault = await this.#compareBody(request, opened);
    if (fault === "changed") return await this.#changed("document");
    if (fault === "unreadable") return await this.#record({ kind: "not-sent", cause: "document-unreadable" }, 0);
    if (!(await this.#stillMine())) return await this.#record({ kind: "not-sent", cause: "claim-lost" }, 0);
    const started = performance.now();
    const observation = await this.#call(request);
    return await this.#record(observation, performance.now() - started);
  }

  /** Stored, but no longer what was approved: nothing was sent, a person decides. */
  async #changed(what: string): Promise<SubmitOutcome> {
    const { tenant_id: tenantId, operation_id: operationId } = this.#row;
    await payloadChanged(this.#deps.ledger, {
      tenantId,
      operationId,
      owner: this.#owner,
      actor: "submit-worker",
      reason: "payload-changed-after-approval",
      evidence: { what },
    });
    this.#deps.logger.error(
      { tenant: tenantId, operation: operationId, reason: "payload-changed" },
      "nothing was sent",
    );
    return { kind: "payload-changed" };
  }

  /** The bytes of this attempt against the digest of the approval. */
  async #compareBody(
    request: PreparedRequest,
    opened: Extract<OpenedRequest, { kind: "intact" }>,
  ): Promise<"same" | "changed" | "unreadable"> {
    const documents = new Map<string, Uint8Array>();
    try {
      for (const digest of documentsOf(request)) {
        documents.set(digest, await this.#deps.documents.get(this.#row.tenant_id, digest));
      }
    } catch (error) {
      this.#deps.logger.warn(
        { err: error, tenant: this.#row.tenant_id, operation: this.#row.operation_id },
        "document unreadable",
      );
      return "unreadable";
    }
    try {
      return assembleBody(request, documents).digest === opened.bodyDigest ? "same" : "changed";
    } catch (error) {
      this.#deps.logger.warn(
        { err: error, tenant: this.#row.tenant_id, operation: this.#row.operation_id },
        "body differs",
      );
      return "changed";
    }
  }

  /** Before the first byte: owner, attempt and evidence are still those of the claim. */
  async #stillMine(): Promise<boolean> {
    const row = this.#row;
    if (row.attempt_no === 1 && this.#clock.elapsedMs() < freshClaimMs) return true;
    const found = await findState(this.#deps.ledger.sql, row.tenant_id, row.operation_id);
    return (
      found?.leaseOwner === this.#owner && found.attemptNo === row.attempt_no && found.evidenceNo === row.evidence_no
    );
  }

  async #call(request: PreparedRequest): Promise<Observation> {
    const { ledger, documents, deadlineMs } = this.#deps;
    const { tenant_id: tenantId, operation_id: operationId, attempt_no: attemptNo } = this.#row;
    try {
      const connection = await this.#deps.connection(tenantId, this.#row.connection_id);
      const provider = this.#deps.provider(connection.provider);
      if (provider === undefined) return { kind: "not-sent", cause: "unknown-provider" };
      return await provider.submit(this.#row.action, request, {
        baseUrl: connection.baseUrl,
        credential: connection.credential,
        providerKey: this.#row.provider_key,
        tenantId,
        operationId,
        ...(this.#row.target_ref === null ? {} : { targetRef: this.#row.target_ref }),
        document: (digest) => documents.get(tenantId, digest),
        deadlineMs,
        mayWrite: () => this.#mayWrite(),
        reportReference: async (ref, role) => {
          await recordEvidence(ledger.sql, {
            tenantId,
            operationId,
            attemptNo,
            providerRef: ref,
            role,
            source: "mid-call",
            actor: "submit-worker",
            reason: "reference-reported",
          });
        },
      });
    } catch (error) {
      // An adapter that throws may have sent: never a failure, never a success.
      this.#deps.logger.error({ err: error, tenant: tenantId, operation: operationId }, "adapter threw");
      return { kind: "ambiguous", cause: "adapter-threw" };
    }
  }

  #mayWrite(): boolean {
    const may = this.#clock.mayWrite(this.#deps.deadlineMs);
    if (!may && !this.#refusedToWrite) {
      this.#refusedToWrite = true;
      this.#deps.nearMiss?.();
    }
    return may;
  }

  async #record(observation: Observation, ms: number): Promise<SubmitOutcome> {
    const { tenant_id: tenant, operation_id: operation, attempt_no: attempt, action } = this.#row;
    this.#deps.observed?.({ action, outcome: observation.kind, ms });
    const state = await recordObservation(this.#deps, this.#row, this.#owner, observation, {
      ms: Math.round(ms),
      nearMiss: this.#refusedToWrite,
    });
    this.#deps.logger.info(
      { tenant, operation, attempt, outcome: observation.kind, state, ms: Math.round(ms) },
      "provider call recorded",
    );
    return { kind: "recorded", observation: observation.kind, state };
  }
}
