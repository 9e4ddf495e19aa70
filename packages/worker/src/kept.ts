export interface KeptOptions {
  /** For how long a value answers, ms. */
  readonly keepMs: number;
  /** Longest that an asker waits for a new one, ms. */
  readonly waitMs: number;
  /** Told of each failed reading; `undefined` where a reading succeeded. */
  onResult(error: unknown): void;
}

/**
 * A value that is read when somebody asks, shared by all who ask meanwhile, and kept for a while. At most one reading runs
 * at a time, however slow it is; an asker who has waited long enough gets undefined, as for a reading that failed.
 */
export class Kept<Value> {
  readonly #read: () => Promise<Value>;
  readonly #options: KeptOptions;
  #running: Promise<Value | undefined> | undefined;
  #value: Value | undefined;
  #until = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<Value>, options: KeptOptions) {
    this.#read = read;
    this.#options = options;
  }

  async get(): Promise<Value | undefined> {
    if (performance.now() < this.#until) return this.#value;
    this.#running ??= this.#once();
    const running = this.#running;
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, this.#options.waitMs, undefined);
    });
    try {
      return await Promise.race([running, tooLate]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #once(): Promise<Value | undefined> {
    try {
      this.#value = await this.#read();
      this.#options.onResult(undefined);
    } catch (error) {
      this.#value = undefined;
      this.#options.onResult(error);
    } finally {
      this.#until = performance.now() + this.#options.keepMs;
      this.#running = undefined;
    }
    return this.#value;
  }
}
