import type { Endpoint } from "@countersign/ledger";

export interface EndpointCacheOptions {
  /** Milliseconds; 0 asks every time. */
  readonly ttlMs: number;
  /** Endpoints at most; the oldest goes first. */
  readonly max?: number;
}

interface Entry {
  readonly endpoint: Promise<Endpoint | undefined>;
  readonly readAt: number;
}

/**
 * Endpoints with their secrets, for a few seconds. Only what exists is remembered (so nobody fills it by guessing, and a
 * new endpoint works at once), and simultaneous questions for one endpoint are one read.
 */
export class EndpointCache {
  readonly #open: (endpointId: string) => Promise<Endpoint | undefined>;
  readonly #ttlMs: number;
  readonly #max: number;
  readonly #entries = new Map<string, Entry>();

  constructor(open: (endpointId: string) => Promise<Endpoint | undefined>, options: EndpointCacheOptions) {
    this.#open = open;
    this.#ttlMs = options.ttlMs;
    this.#max = options.max ?? 1_000;
  }

  /**
   * The endpoint, or undefined where there is none; what was read longer than `maxAgeMs` ago is read again. Rejects when it
   * isn't remembered and can't be read.
   */
  async get(endpointId: string, maxAgeMs = this.#ttlMs): Promise<Endpoint | undefined> {
    const known = this.#entries.get(endpointId);
    if (known !== undefined && performance.now() < known.readAt + Math.min(maxAgeMs, this.#ttlMs))
      return await known.endpoint;
    const entry: Entry = { endpoint: this.#open(endpointId), readAt: performance.now() };
    this.#remember(endpointId, entry);
    const forget = (): void => {
      if (this.#entries.get(endpointId) === entry) this.#entries.delete(endpointId);
    };
    try {
      const endpoint = await entry.endpoint;
      if (endpoint === undefined) forget();
      return endpoint;
    } catch (error) {
      forget();
      throw error;
    }
  }

  #remember(endpointId: string, entry: Entry): void {
    this.#entries.delete(endpointId);
    this.#entries.set(endpointId, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#max && oldest !== undefined) this.#entries.delete(oldest);
  }
}
