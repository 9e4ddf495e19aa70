import { type Answer, ProviderError } from "./answer.js";
import type { Clock } from "./clock.js";

interface PendingRow {
  readonly status: "pending";
  readonly hash: string;
  readonly firstCallAt: number;
  readonly lockedAt: number;
  readonly owner: symbol;
}

interface SuccessRow {
  readonly status: "success";
  readonly hash: string;
  readonly firstCallAt: number;
  readonly lockedAt: number;
  readonly answer: Answer;
}

type Row = PendingRow | SuccessRow;

/** What `begin` decided: run the request and finish the slot, or send the cached answer again. */
export type Begin =
  | { readonly kind: "run"; readonly slot: KeySlot }
  | { readonly kind: "replay"; readonly answer: Answer };

/** A pending row held by one running call. Both ends do nothing once another call has taken the row over. */
export interface KeySlot {
  /** Caches a 2xx under the key. */
  succeed(answer: Answer): void;
  /** Removes the row: a retry with this key runs fresh. */
  release(): void;
}

const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;
/** The contract caps Retry-After here. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** Checks the format of a key. @throws ProviderError 400 `invalid_idempotency_key`. */
export function checkKey(key: string): string {
  if (!PRINTABLE_ASCII.test(key)) {
    throw new ProviderError(
      400,
      "invalid_idempotency_key",
      "Idempotency-Key takes 1 to 255 printable ASCII characters.",
    );
  }
  return key;
}

/**
 * The provider's idempotency rows, by workspace and key across endpoints. A pending row is a lock that another call
 * may take over once it is stale; a success row replays its answer until its lifetime, counted from the first call,
 * is over.
 */
export class IdempotencyKeys {
  readonly #rows = new Map<string, Row>();
  readonly #clock: Clock;
  readonly #staleLockMs: number;
  readonly #retentionMs: number;

  constructor(clock: Clock, times: { staleLockMs: number; retentionMs: number }) {
    this.#clock = clock;
    this.#staleLockMs = times.staleLockMs;
    this.#retentionMs = times.retentionMs;
  }

  /**
   * Inserts the pending row, or says why not. The hash is compared before anything else, so a changed body is refused
   * also while the first call still runs.
   * @throws ProviderError 422 `idempotency_key_reuse`, 409 `idempotency_in_progress` with Retry-After.
   */
  begin(workspace: string, key: string, hash: string): Begin {
    const id = JSON.stringify([workspace, key]);
    const now = this.#clock.now();
    const row = this.#rows.get(id);
    if (row === undefined || this.#isOver(row, now)) return this.#lock(id, hash, now, now);
    if (row.hash !== hash) {
      throw new ProviderError(422, "idempotency_key_reuse", "This key was used with another request.");
    }
    if (row.status === "success") return { kind: "replay", answer: row.answer };
    const staleAt = row.lockedAt + this.#staleLockMs;
    if (now >= staleAt) return this.#lock(id, hash, row.firstCallAt, now);
    const seconds = Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil((staleAt - now) / 1_000)));
    throw new ProviderError(409, "idempotency_in_progress", "The first call with this key is still running.", {
      "retry-after": String(seconds),
    });
  }

  /** Drops the rows whose lifetime is over. */
  prune(): void {
    const now = this.#clock.now();
    for (const [id, row] of this.#rows) if (this.#isOver(row, now)) this.#rows.delete(id);
  }

  get size(): number {
    return this.#rows.size;
  }

  #isOver(row: Row, now: number): boolean {
    return now >= row.firstCallAt + this.#retentionMs;
  }

  #lock(id: string, hash: string, firstCallAt: number, now: number): Begin {
    const owner = Symbol("call");
    this.#rows.set(id, { status: "pending", hash, firstCallAt, lockedAt: now, owner });
    const held = () => {
      const row = this.#rows.get(id);
      return row?.status === "pending" && row.owner === owner ? row : undefined;
    };
    return {
      kind: "run",
      slot: {
        succeed: (answer) => {
          const row = held();
          if (row !== undefined) {
            const { lockedAt } = row;
            this.#rows.set(id, { status: "success", hash, firstCallAt, lockedAt, answer });
          }
        },
        release: () => {
          if (held() !== undefined) this.#rows.delete(id);
        },
      },
    };
  }
}
