/** The provider's clock. It can be moved forward, so that a test of "after 24 hours" need not wait. */
export class Clock {
  #offsetMs = 0;

  /** Milliseconds since the epoch, as this provider sees them. */
  now(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Moves the clock forward; timers that already run are not shortened. */
  advance(ms: number): void {
    this.#offsetMs += ms;
  }
}

/** Nothing came to rest within the time allowed. */
export class NotIdleError extends Error {
  override readonly name = "NotIdleError";
}

/** Background work of the simulator: everything that is still to happen is counted here, and can be cancelled. */
export class Background {
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #waiters = new Set<() => void>();
  #running = 0;
  #stopped = false;

  /** Runs `work` after `ms`; forgotten when the simulator stops. */
  after(ms: number, work: () => void): () => void {
    if (this.#stopped) return () => undefined;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
      this.#settle();
    }, ms);
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer);
      this.#timers.delete(timer);
      this.#settle();
    };
  }

  /** Resolves after `ms`; never, when the simulator stops before that. */
  sleep(ms: number): Promise<void> {
    return ms <= 0 ? Promise.resolve() : new Promise((resolve) => this.after(ms, resolve));
  }

  /** Counts a promise as unfinished work until it settles; its outcome stays the caller's. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#running += 1;
    const done = () => {
      this.#running -= 1;
      this.#settle();
    };
    work.then(done, done);
    return work;
  }

  /** Resolves as soon as nothing is left to happen. @throws NotIdleError after `timeoutMs`. */
  async idle(timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!this.#stopped && (this.#timers.size > 0 || this.#running > 0)) {
      const left = deadline - Date.now();
      if (left <= 0) throw new NotIdleError(`${this.#timers.size} timers, ${this.#running} calls unfinished`);
      await this.#nextSettle(left);
    }
  }

  /** Cancels every timer. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#settle();
  }

  #settle(): void {
    for (const wake of this.#waiters) wake();
  }

  #nextSettle(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiters.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#waiters.add(wake);
    });
  }
}
