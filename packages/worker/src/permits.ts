import { setTimeout as pause } from "node:timers/promises";
import { type Ledger, takePermits } from "@countersign/ledger";

/** The time one block of permits covers, ms. */
const blockMs = 100;

interface Limited {
  tenantId: string;
  connectionId: string;
  ratePerSecond: number | null;
}

/**
 * One limiter per connection (DESIGN §6): submissions, resubmissions, lookups and replays of every process count alike.
 * Permits come from PostgreSQL in blocks of about 100 ms; what a process does not use lapses.
 */
export class Permits {
  readonly #ledger: Ledger;
  readonly #lines = new Map<string, Line>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Resolves once one call may be made; false where that would be later than `maxWaitMs`. Unlimited: at once. */
  async take(connection: Limited, maxWaitMs: number): Promise<boolean> {
    const { tenantId, connectionId, ratePerSecond } = connection;
    if (ratePerSecond === null) return true;
    const key = `${tenantId} ${connectionId}`;
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line((count, perSecond, waitMs) =>
        takePermits(this.#ledger, tenantId, connectionId, { count, perSecond, maxWaitMs: waitMs }),
      );
      this.#lines.set(key, line);
    }
    const until = performance.now() + maxWaitMs;
    for (;;) {
      const at = await line.next(ratePerSecond, until - performance.now());
      if (at === undefined) return false;
      const wait = at - performance.now();
      if (wait > 0) await pause(wait);
      // A process that was held up would otherwise make its missed calls all at once: they have lapsed.
      if (performance.now() - at <= blockMs) return true;
    }
  }
}

type TakeBlock = (count: number, perSecond: number, maxWaitMs: number) => Promise<{ waitMs: number } | undefined>;

/** Those who wait for one connection in this process, first come, first served. */
class Line {
  readonly #takeBlock: TakeBlock;
  #slots: number[] = [];
  #tail: Promise<unknown> = Promise.resolve();

  constructor(takeBlock: TakeBlock) {
    this.#takeBlock = takeBlock;
  }

  /** When the caller may go (monotonic ms); undefined where not in time. */
  next(perSecond: number, maxWaitMs: number): Promise<number | undefined> {
    const until = performance.now() + maxWaitMs;
    const mine = this.#tail.then(() => this.#slot(perSecond, until));
    this.#tail = mine.catch(() => undefined);
    return mine;
  }

  async #slot(perSecond: number, until: number): Promise<number | undefined> {
    const now = performance.now();
    this.#slots = this.#slots.filter((at) => at >= now - blockMs);
    if (this.#slots.length === 0) {
      const count = Math.max(1, Math.floor((perSecond * blockMs) / 1000));
      const block = await this.#takeBlock(count, perSecond, Math.max(0, until - now));
      if (block === undefined) return undefined;
      const begin = performance.now() + block.waitMs;
      this.#slots = Array.from({ length: count }, (_, index) => begin + (index * 1000) / perSecond);
    }
    const [first] = this.#slots;
    if (first === undefined || first > until) return undefined;
    this.#slots.shift();
    return first;
  }
}
