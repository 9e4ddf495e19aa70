import { getOperations, isResolved, type Ledger, type OperationView } from "@countersign/ledger";
import type { Logger } from "@countersign/runtime";

const pollMs = 150;
export const longestWaitSeconds = 60;

/** Seconds that `Prefer: wait=N` asks for, capped; 0 where it asks for none. */
export function waitSecondsOf(prefer: string | string[] | undefined): number {
  const text = Array.isArray(prefer) ? prefer.join(",") : (prefer ?? "");
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(text)?.[1];
  return seconds === undefined ? 0 : Math.min(Number(seconds), longestWaitSeconds);
}

interface Waiter {
  tenantId: string;
  operationId: string;
  resolve(): void;
}

/** Everybody who waits for an operation waits on one poll: one read for all, however many wait. */
export class Waiting {
  readonly #ledger: Ledger;
  readonly #logger: Logger;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(ledger: Ledger, logger: Logger) {
    this.#ledger = ledger;
    this.#logger = logger;
  }

  /** Resolves when the operation is resolved, the time is over, the caller is gone, or the process stops. */
  async until(
    operation: Pick<OperationView, "tenantId" | "operationId">,
    seconds: number,
    gone: AbortSignal,
  ): Promise<void> {
    if (this.#stopped || gone.aborted) return;
    await new Promise<void>((resolve) => {
      const waiter: Waiter = {
        tenantId: operation.tenantId,
        operationId: operation.operationId,
        resolve: () => done(),
      };
      const timer = setTimeout(() => done(), seconds * 1_000);
      const done = (): void => {
        clearTimeout(timer);
        gone.removeEventListener("abort", done);
        this.#waiters.delete(waiter);
        resolve();
      };
      gone.addEventListener("abort", done, { once: true });
      this.#waiters.add(waiter);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiters.size === 0 || this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#poll().then(
        () => this.#again(),
        (error: unknown) => {
          this.#logger.warn({ err: error }, "waiting could not look");
          this.#again();
        },
      );
    }, pollMs);
  }

  #again(): void {
    this.#timer = undefined;
    this.#schedule();
  }

  async #poll(): Promise<void> {
    const waiters = [...this.#waiters];
    const operations = await getOperations(this.#ledger, waiters);
    const resolved = new Set(operations.filter(({ state }) => isResolved(state)).map(({ operationId }) => operationId));
    for (const waiter of waiters) if (resolved.has(waiter.operationId)) waiter.resolve();
  }

  /** Everybody gets the answer of now. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const waiter of [...this.#waiters]) waiter.resolve();
  }
}
