export interface GroupCommitOptions<Item, Result> {
  /** Stores items in one commit, all or none; the results in their order. */
  readonly store: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Whether a failure may have come from one of the items, so that each is tried alone. */
  readonly perhapsOneItem: (error: unknown) => boolean;
  /** Commits that run side by side. */
  readonly parallel: number;
  /** What an item weighs (bytes), and what one commit carries at most; a heavier item is stored alone. */
  readonly weigh: (item: Item) => number;
  readonly most: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Stores what arrives while other commits run in one commit of its own. Nothing waits on purpose: an item that finds a
 * free place is stored at once, alone. Each `add` resolves only after the commit that holds its item.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  readonly #waiting: Waiting<Item, Result>[] = [];
  #running = 0;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    while (this.#running < this.#options.parallel && this.#waiting.length > 0) {
      this.#running += 1;
      void this.#run(this.#take()).finally(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }

  #take(): Waiting<Item, Result>[] {
    const { weigh, most } = this.#options;
    let [count, weight] = [0, 0];
    for (const { item } of this.#waiting) {
      weight += weigh(item);
      if (count > 0 && weight > most) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Never rejects: every item has been told its result or its error. */
  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.store(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result === undefined) reject(new Error("stored without a result"));
        else resolve(result);
      });
    } catch (error) {
      if (batch.length > 1 && this.#options.perhapsOneItem(error)) {
        for (const each of batch) await this.#run([each]);
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }
}
