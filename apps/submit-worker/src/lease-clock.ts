/** Time since just before the claim, by the larger of two clocks: one stops in a suspended machine, the other jumps. */
export interface Clocks {
  /** ms, monotonic. */
  monotonic(): number;
  /** ms, wall. */
  wall(): number;
}

export const systemClocks: Clocks = { monotonic: () => performance.now(), wall: () => Date.now() };

/**
 * The paused sender (DESIGN §12.1): a worker may wake after its lease has run out and another has sent. The provider
 * can't check our fence, so nothing is written unless the whole deadline still fits inside the lease.
 */
export class LeaseClock {
  readonly #clocks: Clocks;
  readonly #monotonicStart: number;
  readonly #wallStart: number;
  readonly #leaseMs: number;
  readonly #marginMs: number;
  #writeUntilMs: number | undefined;

  /** Start it before the claim is asked for. */
  constructor(options: { leaseMs: number; marginMs: number; clocks?: Clocks }) {
    this.#clocks = options.clocks ?? systemClocks;
    this.#monotonicStart = this.#clocks.monotonic();
    this.#wallStart = this.#clocks.wall();
    this.#leaseMs = options.leaseMs;
    this.#marginMs = options.marginMs;
  }

  /** ms since the start; never less than either clock says. */
  elapsedMs(): number {
    return Math.max(this.#clocks.monotonic() - this.#monotonicStart, this.#clocks.wall() - this.#wallStart);
  }

  /**
   * May the first (or a further) byte be written? The first needs room for the whole deadline; later ones must still lie
   * inside that deadline.
   */
  mayWrite(deadlineMs: number): boolean {
    const elapsed = this.elapsedMs();
    if (this.#writeUntilMs !== undefined) return elapsed <= this.#writeUntilMs;
    if (elapsed + deadlineMs + this.#marginMs > this.#leaseMs) return false;
    this.#writeUntilMs = elapsed + deadlineMs;
    return true;
  }
}
