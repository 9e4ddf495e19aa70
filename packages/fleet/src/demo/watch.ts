import { isResolved, type Ledger } from "@countersign/ledger";
import { glance, type OperationGlance } from "./operations.js";

const everyMs = 150;

/** Looks at the ledger again and again, for those who wait for something in it and for the progress display. */
export class Watch {
  readonly #ledger: Ledger;
  readonly #onLook: (rows: readonly OperationGlance[]) => void;
  readonly #waiting = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #rows: readonly OperationGlance[] = [];
  #failure: unknown;

  constructor(ledger: Ledger, onLook: (rows: readonly OperationGlance[]) => void) {
    this.#ledger = ledger;
    this.#onLook = onLook;
  }

  start(): void {
    void this.#look();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#wake();
  }

  get rows(): readonly OperationGlance[] {
    return this.#rows;
  }

  /** Resolves after the next look. @throws what the last look failed with */
  async next(): Promise<readonly OperationGlance[]> {
    if (!this.#stopped) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    if (this.#failure !== undefined) throw this.#failure;
    return this.#rows;
  }

  /** Waits until `good` holds, at most `timeoutMs`; false when it still does not. */
  async until(
    good: (rows: readonly OperationGlance[]) => boolean,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const end = performance.now() + timeoutMs;
    // The look that is under way may have begun before what is waited for.
    await this.next();
    while (!good(await this.next())) {
      signal.throwIfAborted();
      if (performance.now() > end) return false;
    }
    return true;
  }

  async #look(): Promise<void> {
    try {
      this.#rows = await glance(this.#ledger);
      this.#failure = undefined;
      this.#onLook(this.#rows);
    } catch (error) {
      this.#failure = error;
    }
    this.#wake();
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#look(), everyMs);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** Is there nothing left that moves without a person? */
export const allResolved = (rows: readonly OperationGlance[]): boolean => rows.every(({ state }) => isResolved(state));
