import type { Endpoint, Silence } from "@countersign/ledger";

export interface WatchLimits {
  /** Deliveries in a row. */
  readonly count: number;
  /** Since the first of them, ms. */
  readonly forMs: number;
}

interface State {
  refused: number;
  refusedSince: number;
  reported: boolean;
  failed: number;
  failedSince: number;
}

/**
 * Notices, without a write, what a sender must be thinking of an endpoint: deliveries of which none verifies any more, and
 * those that were answered 503 (its sender may have turned it off by then). Reports each such time once: while refusing,
 * and after a run of failures as soon as something can be stored again.
 */
export class EndpointWatch {
  readonly #states = new Map<string, State>();
  readonly #limits: WatchLimits;
  readonly #report: (silence: Silence) => Promise<unknown>;
  readonly #now: () => number;

  constructor(
    limits: WatchLimits,
    report: (silence: Silence) => Promise<unknown>,
    now: () => number = () => performance.now(),
  ) {
    this.#limits = limits;
    this.#report = report;
    this.#now = now;
  }

  /** A delivery to this endpoint did not verify. */
  refused(endpoint: Endpoint, reason: string): void {
    const state = this.#of(endpoint);
    if (state.refused === 0) state.refusedSince = this.#now();
    state.refused += 1;
    const long = this.#now() - state.refusedSince >= this.#limits.forMs;
    if (state.reported || state.refused < this.#limits.count || !long) return;
    state.reported = true;
    const details = { refused: state.refused, last: reason };
    void this.#report({ ...about(endpoint), reason: "refusing", details }).catch(() => {
      // Tried again with the next refused delivery.
      state.reported = false;
    });
  }

  /** A delivery verified and could not be stored. */
  failed(endpoint: Endpoint): void {
    const state = this.#of(endpoint);
    if (state.failed === 0) state.failedSince = this.#now();
    state.failed += 1;
  }

  /** A delivery verified and was stored. */
  stored(endpoint: Endpoint): void {
    const state = this.#states.get(endpoint.endpointId);
    if (state === undefined) return;
    this.#states.delete(endpoint.endpointId);
    const seconds = Math.round((this.#now() - state.failedSince) / 1_000);
    if (state.failed < this.#limits.count && (state.failed === 0 || seconds * 1_000 < this.#limits.forMs)) return;
    const details = { failed: state.failed, seconds };
    void this.#report({ ...about(endpoint), reason: "ingress-outage", details }).catch(() => {
      // Said again with the next one that is stored.
      this.#states.set(endpoint.endpointId, state);
    });
  }

  #of({ endpointId }: Endpoint): State {
    const known = this.#states.get(endpointId);
    if (known !== undefined) return known;
    const state: State = { refused: 0, refusedSince: 0, reported: false, failed: 0, failedSince: 0 };
    this.#states.set(endpointId, state);
    return state;
  }
}

const about = ({ tenantId, connectionId, endpointId }: Endpoint) => ({ tenantId, connectionId, endpointId });
