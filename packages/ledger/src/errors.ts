/** What went wrong, what the caller may do: `rejected` (never try again as is), `retry-later`, or `unknown` (look first). */
export type Disposition = "rejected" | "retry-later" | "unknown";

/** Base of every error this package throws on purpose. Messages carry ids and codes only, so they are safe to log. */
export abstract class LedgerError extends Error {
  abstract readonly code: string;
  abstract readonly disposition: Disposition;
  readonly safeMessage: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.safeMessage = message;
  }
}

/** Something the caller named does not exist for this tenant (another tenant's is indistinguishable from none). */
export class NotFoundError extends LedgerError {
  readonly code = "not-found";
  readonly disposition = "rejected";
  readonly what: string;
  constructor(what: string) {
    super(`${what} not found`);
    this.what = what;
  }
}

/** The request contradicts the ledger; `code` says how, `detail` names ids and parts only. */
export class PlanRefusedError extends LedgerError {
  readonly disposition = "rejected";
  readonly code: string;
  readonly detail: Record<string, unknown>;
  constructor(code: string, message: string, detail: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}

/** Bytes at rest could not be read with the key in the environment. */
export class DecryptionError extends LedgerError {
  readonly code = "decryption-failed";
  readonly disposition = "retry-later";
}

/** SQLSTATEs that the guards of the schema raise (migrations/0007_guards.sql). */
export const guardStates = {
  illegalTransition: "CS001",
  frozenColumn: "CS002",
  appendOnly: "CS003",
  referenceOfAnotherOperation: "CS004",
  legalHold: "CS005",
} as const;

/** The SQLSTATE of a PostgreSQL error, or undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * Transient SQLSTATEs after which the statement certainly did not commit: serialization failure, deadlock, lock not
 * available, admin or crash shutdown before it ran, too many connections. A lost connection is *not* among them: its
 * commit may have happened.
 */
export const certainlyRolledBack: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "53300", "57P03"]);
