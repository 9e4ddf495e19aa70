import { randomUUID } from "node:crypto";
import {
  type Connection,
  claimForReconcile,
  type DueJob,
  inconclusive,
  type Ledger,
  postpone,
  type TransitionRow,
} from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import { backoffMs, type Logger } from "@countersign/runtime";
import { applyVerdict } from "./apply-verdict.js";
import { decide, type Verdict } from "./decide.js";
import { capabilitiesOf, gatherEvidence } from "./gather-evidence.js";

export interface ReconcileDeps {
  ledger: Ledger;
  provider(name: string): SignatureProvider | undefined;
  connection(tenantId: string, connectionId: string): Promise<Connection & { credential: string }>;
  handOver(jobs: DueJob[]): Promise<void>;
  logger: Logger;
  leaseMs: number;
  deadlineMs: number;
  quiescenceMs: number;
  lookupLagMs: number;
  eventWaitMs: number;
  confirmations: number;
  spacingMs: number;
  absenceMaxAgeMs: number;
  backoff: { baseMs: number; maxMs: number };
  /** Told of each pass, for metrics. */
  decided?(what: { action: string; verdict: string; state: string }): void;
}

export type ReconcileOutcome =
  | { kind: "not-claimed"; found: string }
  | { kind: "decided"; verdict: string; state: string };

/**
 * One reconcile pass: claim, ask, decide, write the verdict under the owner token and the evidence it was made on. It
 * only reads at the provider; whatever is to be sent again is sent by a submit worker after its own claim.
 */
export async function reconcileOperation(
  deps: ReconcileDeps,
  tenantId: string,
  operationId: string,
): Promise<ReconcileOutcome> {
  const owner = randomUUID();
  const claim = await claimForReconcile(deps.ledger, {
    tenantId,
    operationId,
    owner,
    leaseMs: deps.leaseMs,
    actor: "reconcile-worker",
    reason: "looking",
  });
  if (!claim.applied) {
    const { found } = claim;
    if (found?.state === "UNKNOWN" && found.waitMs > 0) {
      await postpone(deps.ledger, { tenantId, operationId, state: "UNKNOWN", waitMs: found.waitMs });
    }
    return { kind: "not-claimed", found: found?.state ?? "missing" };
  }
  const pass = new Pass(deps, claim.row, owner);
  const { verdict, state } = await pass.run();
  deps.decided?.({ action: claim.row.action, verdict: verdict.kind, state });
  deps.logger.info(
    {
      tenant: tenantId,
      operation: operationId,
      attempt: claim.row.attempt_no,
      verdict: verdict.kind,
      reason: verdict.reason,
      state,
    },
    "reconciled",
  );
  return { kind: "decided", verdict: verdict.kind, state };
}

/** One pass under one lease. */
class Pass {
  readonly #deps: ReconcileDeps;
  readonly #row: TransitionRow;
  readonly #owner: string;

  constructor(deps: ReconcileDeps, row: TransitionRow, owner: string) {
    this.#deps = deps;
    this.#row = row;
    this.#owner = owner;
  }

  async run(): Promise<{ verdict: Verdict; state: string }> {
    const row = this.#row;
    const connection = await this.#deps.connection(row.tenant_id, row.connection_id);
    const provider = this.#deps.provider(connection.provider);
    if (provider === undefined) return this.#wait("unknown-provider", this.#deps.backoff.maxMs);
    const asking = { ledger: this.#deps.ledger, provider, connection, deadlineMs: this.#deps.deadlineMs };
    // The claim's own time is before the look began, so counting from it errs on the safe side.
    const beganAt = row.db_now;
    if (connection.pausedForMs > 0 && row.open_attempts + row.references_seen > 0) {
      return this.#wait("connection-paused", connection.pausedForMs);
    }
    const evidence = await gatherEvidence(row, asking);
    const clock = {
      sinceQuietMs: row.quiet_from === null ? 0 : Date.parse(beganAt) - Date.parse(row.quiet_from),
      quiescenceMs: this.#deps.quiescenceMs,
      lookupLagMs: this.#deps.lookupLagMs,
      eventWaitMs: this.#deps.eventWaitMs,
    };
    const verdict = decide(evidence, capabilitiesOf(row, asking), clock);
    const state = await applyVerdict(
      { ...this.#deps, row, owner: this.#owner, beganAt, clock, evidence },
      verdict,
      () => this.#nextLookMs(clock),
    );
    return { verdict, state };
  }

  /** Presence may show any moment, absence only after the window: back off, but look as soon as the window has passed. */
  #nextLookMs(clock: { sinceQuietMs: number; quiescenceMs: number }): number {
    const looks = Math.max(1, Math.floor((this.#row.event_no - 2 * this.#row.attempt_no) / 2));
    const wait = Math.max(this.#deps.backoff.baseMs / 4, backoffMs(looks, this.#deps.backoff));
    const untilWindow = clock.quiescenceMs - clock.sinceQuietMs;
    return untilWindow > 0 ? Math.min(wait, untilWindow) : wait;
  }

  async #wait(reason: string, dueMs: number): Promise<{ verdict: Verdict; state: string }> {
    const { tenant_id: tenantId, operation_id: operationId } = this.#row;
    const outcome = await inconclusive(this.#deps.ledger, {
      tenantId,
      operationId,
      owner: this.#owner,
      dueMs,
      actor: "reconcile-worker",
      reason,
    });
    const state = outcome.applied ? outcome.row.state : (outcome.found?.state ?? "missing");
    return { verdict: { kind: "wait", reason }, state };
  }
}
