import { randomUUID } from "node:crypto";
import {
  type ClaimedRow,
  type Connection,
  claimForSubmit,
  type DocumentStore,
  type DueJob,
  findState,
  type Ledger,
  type NearMissKind,
  type OpenedRequest,
  openApproved,
  payloadChanged,
  postpone,
  recordEvidence,
  recordNearMiss,
  sendBeforePassed,
  signingStatusOf,
  type TransitionRow,
} from "@countersign/ledger";
import {
  assembleBody,
  documentsOf,
  type Observation,
  type PreparedRequest,
  type ProviderStatus,
  type SignatureProvider,
} from "@countersign/provider";
import { inSpan, type Logger, type OpenSpan } from "@countersign/runtime";
import { healthOf } from "@countersign/worker";
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
  /** The process whose heartbeat vouches for its claims; undefined: leases alone decide. */
  processId?: string;
  /** Waits for the connection's next permitted call; false where that would be later than `maxWaitMs`. */
  permit?(connection: Connection, maxWaitMs: number): Promise<boolean>;
  /** Told what every call says of the provider. */
  health?: {
    note(connection: Connection, health: "up" | "down" | "nothing"): Promise<void>;
    rateLimit(connection: Connection): (limit: { remaining: number; resetMs: number }) => void;
  };
  /** How often a FINALIZE reads a target that is not complete, ms. */
  pollMs?: number;
  /** How long a row waits when the provider's circuit is open, ms, before chance. */
  circuitWaitMs?: number;
  clocks?: Clocks;
  /** Told of what happened, for metrics. */
  observed?(what: { action: string; outcome: string; ms: number }): void;
  nearMiss?(kind: NearMissKind): void;
}

type Opened = Connection & { credential: string };

export type SubmitOutcome =
  | { kind: "not-claimed"; found: string }
  | { kind: "payload-changed" }
  | { kind: "recorded"; observation: Observation["kind"]; state: string };

const httpStatusOf = (observation: Observation): number | undefined =>
  "httpStatus" in observation ? observation.httpStatus : undefined;

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
  const asked = performance.now();
  // If this commit goes unanswered no call is made: the error ends the job, and the sweeper finds the row.
  const [claim] = await claimForSubmit(deps.ledger, [
    {
      tenantId,
      operationId,
      owner,
      leaseMs: deps.leaseMs,
      ...(deps.processId === undefined ? {} : { process: deps.processId }),
      actor: "submit-worker",
      reason: "claimed",
      evidence: { owner },
    },
  ]);
  if (claim === undefined || !claim.applied) return notClaimed(deps, tenantId, operationId);
  const { row } = claim;
  const attempt = new Attempt(deps, row, owner, clock);
  const facts = { ...subjectOf(row), action: row.action, connection: row.connection_id };
  const ms = Math.round(performance.now() - asked);
  deps.logger.info({ ...facts, from: "PLANNED", state: row.state, ms }, "claimed");
  return await inSpan({ name: "submit", of: operationId, facts }, (span) => attempt.run(span));
}

/** Zero rows: stop. What stood in the way decides only when somebody looks next. */
async function notClaimed(deps: SubmitDeps, tenantId: string, operationId: string): Promise<SubmitOutcome> {
  const found = await findState(deps.ledger.sql, tenantId, operationId);
  if (found?.state !== "PLANNED") {
    // Somebody is calling at this very moment: without the claim there would have been two of us.
    if (found?.state === "IN_FLIGHT")
      await nearMiss(deps, { tenantId, operationId, attemptNo: found.attemptNo }, "claim-lost");
    return { kind: "not-claimed", found: found?.state ?? "missing" };
  }
  if (found.sendBeforePassed) {
    const moved = await sendBeforePassed(deps.ledger, {
      tenantId,
      operationId,
      actor: "submit-worker",
      reason: "absence-proof-aged",
    });
    if (moved.applied) {
      const { row } = moved;
      deps.logger.info({ ...subjectOf(row), from: "PLANNED", state: row.state, reason: row.reason }, "not sent");
      await deps.handOver([jobOf(row.event_no, "reconcile", tenantId, operationId)]);
    }
  } else if (found.waitMs > 0 || found.held || found.circuitOpen) {
    // By chance, so that what waited together does not come back together; a release makes it due earlier.
    const blocked = found.held ? heldWaitMs : found.circuitOpen ? (deps.circuitWaitMs ?? heldWaitMs) : 0;
    const waitMs = Math.max(found.waitMs, blocked * (0.5 + Math.random()));
    await postpone(deps.ledger, { tenantId, operationId, state: "PLANNED", waitMs });
  }
  return { kind: "not-claimed", found: "PLANNED" };
}

/** How long a held row waits before somebody looks again, ms. */
const heldWaitMs = 60_000;

/** The guard worked: counted, and kept in the timeline. Best effort, since nothing went wrong. */
async function nearMiss(
  deps: SubmitDeps,
  attempt: { tenantId: string; operationId: string; attemptNo: number },
  kind: NearMissKind,
): Promise<void> {
  deps.nearMiss?.(kind);
  try {
    await recordNearMiss(deps.ledger, { ...attempt, kind, actor: "submit-worker" });
  } catch (error) {
    deps.logger.warn({ err: error, tenant: attempt.tenantId, operation: attempt.operationId }, "near miss not stored");
  }
}

export const jobOf = (eventNo: number, queue: DueJob["queue"], tenantId: string, subjectId: string): DueJob => ({
  queue,
  tenantId,
  kind: "operation",
  subjectId,
  eventNo,
  dispatches: 0,
});

/** Whose line or span it is. */
const subjectOf = (row: TransitionRow) => ({
  tenant: row.tenant_id,
  operation: row.operation_id,
  attempt: row.attempt_no,
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

  async run(span: OpenSpan): Promise<SubmitOutcome> {
    const outcome = await this.#run();
    span.note(
      outcome.kind === "recorded" ? { outcome: outcome.observation, state: outcome.state } : { outcome: outcome.kind },
    );
    return outcome;
  }

  async #run(): Promise<SubmitOutcome> {
    const row = this.#row;
    const opened = await openApproved(this.#deps.ledger, row);
    if (opened.kind === "changed") return await this.#changed(opened.what);
    if (opened.kind === "unreadable") return await this.#record({ kind: "not-sent", cause: opened.cause }, 0);
    const request = preparedRequest(opened.request);
    if (request === undefined) return await this.#changed("request");
    const fault = await this.#compareBody(request, opened);
    if (fault === "changed") return await this.#changed("document");
    if (fault === "unreadable") return await this.#record({ kind: "not-sent", cause: "document-unreadable" }, 0);
    const connection = await this.#connection();
    if (connection === undefined) return await this.#record({ kind: "not-sent", cause: "connection-unreadable" }, 0);
    if (!(await this.#permitted(connection))) return await this.#record({ kind: "not-sent", cause: "no-permit" }, 0);
    const mine = await this.#stillMine().catch((error: unknown) => {
      this.#deps.logger.warn({ err: error, ...subjectOf(this.#row) }, "row unreadable");
      return undefined;
    });
    // Nothing has left yet, and that is what is written once the ledger is back.
    if (mine === undefined) return await this.#record({ kind: "not-sent", cause: "ledger-unreadable" }, 0);
    if (!mine) {
      await this.#nearMiss("claim-gone");
      return await this.#record({ kind: "not-sent", cause: "claim-gone" }, 0);
    }
    const started = performance.now();
    const observation = await this.#callInSpan(request, connection);
    const ms = performance.now() - started;
    await this.#deps.health?.note(connection, healthOf(observation));
    if (this.#refusedToWrite) await this.#nearMiss("woke-after-lease");
    return await this.#record(observation, ms);
  }

  async #connection(): Promise<Opened | undefined> {
    const { tenant_id: tenantId, connection_id: connectionId } = this.#row;
    try {
      return await this.#deps.connection(tenantId, connectionId);
    } catch (error) {
      this.#deps.logger.warn({ err: error, ...subjectOf(this.#row) }, "connection unreadable");
      return undefined;
    }
  }

  /** Waits for the connection's rate, as long as the whole call still fits inside the lease. */
  async #permitted(connection: Opened): Promise<boolean> {
    const { permit, leaseMs, deadlineMs, marginMs, logger } = this.#deps;
    if (permit === undefined) return true;
    try {
      return await permit(connection, leaseMs - this.#clock.elapsedMs() - deadlineMs - marginMs * 2);
    } catch (error) {
      logger.warn({ err: error, ...subjectOf(this.#row) }, "no permit to be had");
      return false;
    }
  }

  async #nearMiss(kind: NearMissKind): Promise<void> {
    const { tenant_id: tenantId, operation_id: operationId, attempt_no: attemptNo } = this.#row;
    await nearMiss(this.#deps, { tenantId, operationId, attemptNo }, kind);
  }

  /** Stored, but no longer what was approved: nothing was sent, a person decides. */
  async #changed(what: string): Promise<SubmitOutcome> {
    const { tenant_id: tenantId, operation_id: operationId } = this.#row;
    const moved = await payloadChanged(this.#deps.ledger, {
      tenantId,
      operationId,
      owner: this.#owner,
      actor: "submit-worker",
      reason: "payload-changed-after-approval",
      evidence: { what },
    });
    const state = moved.applied ? moved.row.state : (moved.found?.state ?? "missing");
    this.#deps.logger.error(
      { ...subjectOf(this.#row), from: "IN_FLIGHT", state, reason: "payload-changed" },
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
      this.#deps.logger.warn({ err: error, ...subjectOf(this.#row) }, "document unreadable");
      return "unreadable";
    }
    try {
      return assembleBody(request, documents).digest === opened.bodyDigest ? "same" : "changed";
    } catch (error) {
      this.#deps.logger.warn({ err: error, ...subjectOf(this.#row) }, "body differs");
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

  #callInSpan(request: PreparedRequest, connection: Opened): Promise<Observation> {
    const { action, connection_id: connectionId, operation_id: of } = this.#row;
    const facts = { ...subjectOf(this.#row), action, connection: connectionId };
    return inSpan({ name: "provider.call", of, facts }, async (span) => {
      const observation = await this.#call(request, connection);
      span.note({ outcome: observation.kind, status: httpStatusOf(observation) });
      return observation;
    });
  }

  async #call(request: PreparedRequest, connection: Opened): Promise<Observation> {
    const { ledger, documents } = this.#deps;
    const { tenant_id: tenantId, operation_id: operationId, attempt_no: attemptNo } = this.#row;
    try {
      const provider = this.#deps.provider(connection.provider);
      if (provider === undefined) return { kind: "not-sent", cause: "unknown-provider" };
      return await provider.submit(this.#row.action, request, {
        baseUrl: connection.baseUrl,
        credential: connection.credential,
        providerKey: this.#row.provider_key,
        tenantId,
        operationId,
        ...(this.#row.target_ref === null ? {} : { targetRef: this.#row.target_ref, ...(await this.#targetStatus()) }),
        ...(this.#row.draft_ref === null ? {} : { draftRef: this.#row.draft_ref }),
        ...(this.#deps.health === undefined ? {} : { onRateLimit: this.#deps.health.rateLimit(connection) }),
        permit: () => this.#permitted(connection),
        archive: (bytes) => documents.put(tenantId, bytes),
        document: (digest) => documents.get(tenantId, digest),
        deadlineMs: this.#deps.deadlineMs,
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
      this.#deps.logger.error({ err: error, ...subjectOf(this.#row) }, "adapter threw");
      return { kind: "ambiguous", cause: "adapter-threw" };
    }
  }

  /** What the ledger last knew of a VOID's target: a staged one is discarded. */
  async #targetStatus(): Promise<{ targetStatus?: ProviderStatus }> {
    if (this.#row.action !== "VOID" || this.#row.target_ref === null) return {};
    const status = await signingStatusOf(this.#deps.ledger, {
      tenantId: this.#row.tenant_id,
      connectionId: this.#row.connection_id,
      providerRef: this.#row.target_ref,
    });
    return status === "STAGED" ? { targetStatus: "staged" } : {};
  }

  #mayWrite(): boolean {
    const may = this.#clock.mayWrite(this.#deps.deadlineMs);
    if (!may && !this.#refusedToWrite) {
      this.#refusedToWrite = true;
    }
    return may;
  }

  async #record(observation: Observation, ms: number): Promise<SubmitOutcome> {
    const { action, connection_id: connection } = this.#row;
    this.#deps.observed?.({ action, outcome: observation.kind, ms });
    const state = await recordObservation(this.#deps, this.#row, this.#owner, observation, {
      ms: Math.round(ms),
      nearMiss: this.#refusedToWrite,
    });
    this.#deps.logger.info(
      {
        ...subjectOf(this.#row),
        action,
        connection,
        outcome: observation.kind,
        ...("cause" in observation ? { cause: observation.cause } : {}),
        ...("code" in observation ? { code: observation.code } : {}),
        ...("httpStatus" in observation ? { statusCode: observation.httpStatus } : {}),
        from: "IN_FLIGHT",
        state,
        ms: Math.round(ms),
      },
      "provider call recorded",
    );
    return { kind: "recorded", observation: observation.kind, state };
  }
}
