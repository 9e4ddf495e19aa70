/** What was started, to be ended in reverse order. */
export class Cleanup {
  readonly #ends: (() => Promise<void> | void)[] = [];
  #running: Promise<void> | undefined;

  add(end: () => Promise<void> | void): void {
    this.#ends.push(end);
  }

  /** Ends everything, the last started first; one that fails does not keep the others. Rejects with the first failure. */
  run(): Promise<void> {
    this.#running ??= this.#endAll();
    return this.#running;
  }

  async #endAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) {
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
