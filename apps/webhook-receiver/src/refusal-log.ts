import type { Endpoint } from "@countersign/ledger";
import type { Logger } from "@countersign/runtime";

interface Quiet {
  until: number;
  unsaid: number;
}

/**
 * Minimal log lines of refused deliveries: the first per endpoint and reason at once, further ones counted and said with
 * the next line, at most one per `everyMs`. A flood of bad signatures is no flood of lines.
 */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #everyMs: number;
  readonly #now: () => number;
  /** Bounded by the endpoints that exist and the reasons there are. */
  readonly #quiet = new Map<string, Quiet>();

  constructor(logger: Logger, everyMs = 10_000, now: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#everyMs = everyMs;
    this.#now = now;
  }

  refused({ endpointId, tenantId: tenant, connectionId: connection }: Endpoint, reason: string): void {
    const key = `${endpointId} ${reason}`;
    const quiet = this.#quiet.get(key);
    if (quiet !== undefined && this.#now() < quiet.until) {
      quiet.unsaid += 1;
      return;
    }
    this.#logger.warn({ tenant, connection, reason, count: 1 + (quiet?.unsaid ?? 0) }, "webhook refused");
    this.#quiet.set(key, { until: this.#now() + this.#everyMs, unsaid: 0 });
  }
}
