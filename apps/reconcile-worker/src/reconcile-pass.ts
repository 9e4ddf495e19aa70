import { inconclusive, policyInForce, type TransitionRow } from "@countersign/ledger";
import type { LookupResult, SignatureProvider } from "@countersign/provider";
import { backoffMs } from "@countersign/runtime";
import { afterLook } from "./after-look.js";
import { applyVerdict } from "./apply-verdict.js";
import { capabilitiesOf } from "./capabilities.js";
import { decide } from "./decide.js";
import { gatherEvidence, isClosed } from "./gather-evidence.js";
import { lookupCall, type OpenConnection, type ReconcileDeps } from "./reconcile-deps.js";
import type { Clock, Verdict } from "./verdict.js";

export interface PassResult {
  verdict: Verdict;
  state: string;
}

/** One pass over one row under one lease: ask, decide, write the verdict on the evidence it was made on. */
export class Pass {
  readonly #deps: ReconcileDeps;
  readonly #row: TransitionRow;
  readonly #owner: string;
  readonly #connection: OpenConnection;
  readonly #provider: SignatureProvider;

  constructor(
    deps: ReconcileDeps,
    row: TransitionRow,
    owner: string,
    connection: OpenConnection,
    provider: SignatureProvider,
  ) {
    this.#deps = deps;
    this.#row = row;
    this.#owner = owner;
    this.#connection = connection;
    this.#provider = provider;
  }

  /** `listed`: what one list for many has already said of this row. */
  async run(listed?: LookupResult): Promise<PassResult> {
    const row = this.#row;
    const deps = this.#deps;
    // The claim's own time is before the look began, so counting from it errs on the safe side.
    const beganAt = row.db_now;
    const blocked = this.#mayNotAskMs();
    if (blocked > 0) return await this.wait("connection-closed", blocked);
    const tooSoon = listed === undefined ? this.#pollBudgetLeft() : 0;
    if (tooSoon > 0) return await this.wait("poll-budget", tooSoon);
    const evidence = await gatherEvidence(row, {
      ledger: deps.ledger,
      provider: this.#provider,
      connection: this.#connection,
      call: lookupCall(deps, this.#connection),
      logger: deps.logger,
      ...(listed === undefined ? {} : { listed }),
    });
    if (evidence.lookup !== undefined && evidence.lookup.by !== "list") {
      await afterLook(deps, this.#connection, evidence.lookup.result);
    }
    const capabilities = capabilitiesOf(row, {
      provider: this.#provider,
      connection: this.#connection,
      replayRiskAccepted: await this.#replayRiskAccepted(),
      deadlineMs: deps.deadlineMs,
      marginMs: deps.marginMs,
    });
    const clock = this.#clock(beganAt);
    const verdict = decide(evidence, capabilities, clock);
    const pass = {
      ...deps,
      quiescenceMs: clock.quiescenceMs,
      row,
      owner: this.#owner,
      beganAt,
      ...(evidence.lookup === undefined ? {} : { lookedAt: beganAt }),
      clock,
      capabilities,
      evidence,
    };
    const state = await applyVerdict(pass, verdict, () => this.#nextLookMs(clock));
    return { verdict, state };
  }

  /** Leaves the row for later without having asked anything. */
  async wait(reason: string, dueMs: number): Promise<PassResult> {
    const { tenant_id: tenantId, operation_id: operationId } = this.#row;
    const outcome = await inconclusive(this.#deps.ledger, {
      tenantId,
      operationId,
      owner: this.#owner,
      dueMs: Math.ceil(dueMs),
      actor: "reconcile-worker",
      reason,
    });
    const state = outcome.applied ? outcome.row.state : (outcome.found?.state ?? "missing");
    return { verdict: { kind: "wait", reason }, state };
  }

  /** A lag that was measured on this connection counts where it is longer than the assumed one; the window grows with it. */
  #clock(beganAt: string): Clock {
    const row = this.#row;
    const { lookupLagMs, quiescenceMs, eventWaitMs, pollMs } = this.#deps;
    const lag = Math.max(lookupLagMs, this.#connection.lookupVerification?.lagMs ?? 0);
    const since = (moment: string | null): number => (moment === null ? 0 : Date.parse(beganAt) - Date.parse(moment));
    return {
      sinceQuietMs: since(row.quiet_from),
      sinceFirstAttemptMs: since(row.first_attempt_at),
      quiescenceMs: quiescenceMs + lag - lookupLagMs,
      lookupLagMs: lag,
      eventWaitMs,
      pollMs,
    };
  }

  get #minIntervalMs(): number {
    const { capabilities } = this.#provider;
    const { action } = this.#row;
    return capabilities[action === "SEND" ? "SEND" : "VOID"].lookup.minIntervalMs ?? 0;
  }

  /**
   * The claim lets rows through that can be settled by what is on record. A FINALIZE always asks, so it waits for the
   * connection all the same; 0 where nothing stands in the way.
   */
  #mayNotAskMs(): number {
    if (this.#row.action !== "FINALIZE") return 0;
    const { pausedForMs, circuitOpen } = this.#connection;
    return Math.max(pausedForMs, circuitOpen ? this.#deps.circuit.probeMs * (1 + Math.random()) : 0);
  }

  /** ms until the provider may be asked about this object again; 0 where it may, or need not be. */
  #pollBudgetLeft(): number {
    const { looked_at: lookedAt, db_now: now } = this.#row;
    if (lookedAt === null || this.#minIntervalMs === 0 || isClosed(this.#row)) return 0;
    return Math.max(0, Date.parse(lookedAt) + this.#minIntervalMs - Date.parse(now));
  }

  /** Presence may show any moment, absence only after the window: back off, but look as soon as the window has passed. */
  #nextLookMs(clock: Clock): number {
    const looks = Math.max(1, Math.floor((this.#row.event_no - 2 * this.#row.attempt_no) / 2));
    const { backoff } = this.#deps;
    const wait = Math.max(backoff.baseMs / 4, backoffMs(looks, backoff));
    const untilWindow = clock.quiescenceMs - clock.sinceQuietMs;
    return Math.max(this.#minIntervalMs, untilWindow > 0 ? Math.min(wait, untilWindow) : wait);
  }

  async #replayRiskAccepted(): Promise<boolean> {
    const { tenant_id: tenantId, connection_id: connectionId, action } = this.#row;
    const { idempotency } = this.#provider.capabilities[action];
    if (idempotency.kind !== "keyed" || idempotency.replaySafe || idempotency.replayRisk === undefined) return false;
    const policy = await policyInForce(this.#deps.ledger, {
      tenantId,
      connectionId,
      action,
      policy: "accept-replay-risk",
    });
    return policy !== undefined;
  }
}
