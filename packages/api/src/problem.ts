import { LedgerError, NotFoundError, PlanRefusedError, sqlState } from "@countersign/ledger";
import { StrictJsonError } from "@countersign/runtime";

/** A problem of RFC 9457. `detail` and messages name fields and rules, never values. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly status: number;
  /** Last segment of the type URI: stable, to be matched on. */
  readonly code: string;
  readonly title: string;
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(
    status: number,
    code: string,
    title: string,
    extra: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ) {
    super(title);
    this.status = status;
    this.code = code;
    this.title = title;
    this.extra = extra;
    this.headers = headers;
  }

  body(): Record<string, unknown> {
    const own = { type: `/problems/${this.code}`, title: this.title, status: this.status };
    // What a refusal adds never takes the place of what every problem has.
    return { ...own, ...this.extra, ...own };
  }
}

export interface FieldError {
  field: string;
  message: string;
}

export const badRequest = (field: string, message: string): ProblemError =>
  new ProblemError(400, "bad-request", "The request is not valid", { errors: [{ field, message }] });

export const invalid = (errors: readonly FieldError[]): ProblemError =>
  new ProblemError(422, "invalid", "The request is not valid", { errors });

export const notFound = (what: string): ProblemError => new ProblemError(404, "not-found", `${what} not found`);

/** Which status a refusal of the ledger is. */
const statusOf: Record<string, number> = {
  "already-superseded": 409,
  "void-exists": 409,
  "connection-required": 400,
  "connection-unknown": 422,
  "documents-unknown": 422,
  "not-in-review": 409,
  "evidence-moved": 409,
  "too-early": 409,
  "dependants-undecided": 409,
  "reference-of-another-operation": 409,
  "ticket-closed": 409,
  "ticket-is-decided": 409,
  "hold-over": 409,
  "policy-in-force": 409,
  "target-contradicts": 409,
  "reference-being-voided": 409,
  "intent-exists": 409,
  "event-is-settled": 409,
  "body-erased": 409,
  "provider-unreachable": 503,
};

function fromRefusal(error: PlanRefusedError): ProblemError {
  const { field, ...detail } = error.detail;
  const named = error.code === "documents-unknown" ? "payload.documents" : field;
  const { retryAfterMs } = detail;
  const headers = typeof retryAfterMs === "number" ? { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) } : {};
  const extra = typeof named === "string" ? { errors: [{ field: named, message: error.message }] } : {};
  return new ProblemError(statusOf[error.code] ?? 422, error.code, error.message, { ...detail, ...extra }, headers);
}

/** PostgreSQL is away, starting, or full: nothing is known to be wrong with the request. */
const unavailable = (): ProblemError =>
  new ProblemError(
    503,
    "unavailable",
    "The ledger cannot be reached: try again with the same intent key",
    {},
    { "retry-after": "5" },
  );

const connectionCodes = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "ETIMEDOUT",
  "ENOTFOUND",
  "57P01",
  "57P02",
  "57P03",
  "53300",
]);

/** A JSON pointer in the notation of every other field name: `/payload/signers/0` → `payload.signers.0`. */
const dotted = (pointer: string): string => pointer.split("/").filter(Boolean).join(".") || "body";

/** Whatever was thrown, as a problem; undefined where it is a fault of ours. */
export function toProblem(error: unknown): ProblemError | undefined {
  if (error instanceof ProblemError) return error;
  if (error instanceof PlanRefusedError) return fromRefusal(error);
  if (error instanceof NotFoundError) return notFound(error.what);
  if (error instanceof StrictJsonError) return badRequest(dotted(error.path), error.safeMessage);
  const code = sqlState(error);
  if (code !== undefined && connectionCodes.has(code)) return unavailable();
  if (error instanceof LedgerError && error.disposition === "retry-later") return unavailable();
  return undefined;
}
