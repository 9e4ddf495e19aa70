import { createHmac, randomUUID } from "node:crypto";
import { Pool } from "undici";
import { bounded } from "../bounded.js";

/** One event as its sender holds it. */
export interface BenchEvent {
  readonly providerRef: string;
  readonly body: string;
}

/** What a request that was sent may be told next, so that every event changes its status. */
const words = ["viewed", "signed", "completed"] as const;

/** Events of as many requests, in the provider's words by turns. */
export function makeEvents(count: number): BenchEvent[] {
  return Array.from({ length: count }, (_, number) => {
    const word = words[number % words.length];
    const providerRef = `sr_${randomUUID()}`;
    const body = JSON.stringify({
      id: `evt_${randomUUID().replaceAll("-", "")}`,
      type: `signing_request.${word}`,
      created_at: new Date().toISOString(),
      data: { signing_request_id: providerRef, document_id: `doc_${randomUUID()}`, status: word },
    });
    return { providerRef, body };
  });
}

/** Where a sender delivers, and with which secret it signs. */
export interface Target {
  /** Scheme, host and port. */
  readonly url: string;
  readonly path: string;
  readonly secret: string;
}

/** What became of deliveries. */
export interface Delivered {
  /** Answered 2xx. */
  readonly acknowledged: number;
  /** From the first delivery's start to the last answer. */
  readonly seconds: number;
  /** From handing a signed request to a free connection until its 2xx, each; ms, ascending. */
  readonly timesMs: readonly number[];
}

/** A sender with `sideBySide` connections, each with one delivery at a time; nothing is delivered twice. */
export class Sender {
  readonly #target: Target;
  readonly #sideBySide: number;
  readonly #pool: Pool;

  constructor(target: Target, sideBySide: number) {
    this.#target = target;
    this.#sideBySide = sideBySide;
    this.#pool = new Pool(target.url, { connections: sideBySide, pipelining: 1 });
  }

  /** Delivers each event once. Rejects where the server does not answer at all. */
  async deliver(events: readonly BenchEvent[]): Promise<Delivered> {
    const timesMs: number[] = [];
    const start = performance.now();
    await bounded(events, this.#sideBySide, async ({ body }) => {
      const headers = { "content-type": "application/json", "elchi-signature": this.#sign(body) };
      const from = performance.now();
      const answer = await this.#pool.request({ path: this.#target.path, method: "POST", headers, body });
      const took = performance.now() - from;
      await answer.body.dump();
      if (answer.statusCode >= 200 && answer.statusCode < 300) timesMs.push(took);
    });
    const seconds = (performance.now() - start) / 1_000;
    return { acknowledged: timesMs.length, seconds, timesMs: timesMs.sort((left, right) => left - right) };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #sign(body: string): string {
    const at = Math.floor(Date.now() / 1_000);
    return `t=${at},v1=${createHmac("sha256", this.#target.secret).update(`${at}.${body}`).digest("hex")}`;
  }
}

/** The value that this share (0 to 1) of ascending values does not exceed, by nearest rank; NaN where there are none. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? Number.NaN;
}
