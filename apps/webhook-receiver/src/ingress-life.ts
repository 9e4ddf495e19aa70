import { hostname } from "node:os";
import { beat, ingressKind, type Ledger, noteIngressGap, type ProcessIdentity, sayGoodbye } from "@countersign/ledger";
import { type Logger, newId } from "@countersign/runtime";

export interface IngressLifeOptions {
  readonly ledger: Ledger;
  readonly logger: Logger;
  /** Between two heartbeats, ms. */
  readonly everyMs: number;
  /** Silence of every ingress after which the time is caught up, ms. */
  readonly gapMs: number;
}

/**
 * Says that an ingress listens. Where none could say so for a while (none ran, or the database was away), the sender may
 * have given up events or the endpoint: what they would have told is asked about, and the endpoints get their tickets.
 */
export class IngressLife {
  readonly #options: IngressLifeOptions;
  readonly #identity: ProcessIdentity = { processId: newId(), kind: ingressKind, host: hostname(), pid: process.pid };
  #lastBeat = Number.NEGATIVE_INFINITY;
  #failing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: IngressLifeOptions) {
    this.#options = options;
  }

  /** Begins with the first heartbeat; a database that is away delays it and stops nothing. */
  async start(): Promise<void> {
    await this.#once();
    this.#timer = setInterval(() => void this.#once(), this.#options.everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    const { ledger, logger } = this.#options;
    await sayGoodbye(ledger, this.#identity.processId).catch((error: unknown) =>
      logger.warn({ err: error }, "could not say goodbye: the heartbeat will end by itself"),
    );
  }

  async #once(): Promise<void> {
    const { ledger, logger, gapMs } = this.#options;
    try {
      if (performance.now() - this.#lastBeat >= gapMs) {
        const gap = await noteIngressGap(ledger, gapMs);
        if (gap !== undefined)
          logger.warn({ ms: Math.round(gap) }, "no ingress had listened: open requests are asked about");
      }
      await beat(ledger, this.#identity);
      this.#lastBeat = performance.now();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) logger.warn({ err: error }, "heartbeat failed");
      this.#failing = true;
    }
  }
}
