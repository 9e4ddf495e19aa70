import { LedgerError } from "@countersign/ledger";
import { QueueSetupError, QueueUnavailableError } from "@countersign/queue";
import { ConfigError, safeError } from "@countersign/runtime";
import { CommanderError } from "commander";

/** How a command ends: 0 done, 1 refused, 2 usage, 3 unreachable. */
export const exitCodes = { done: 0, refused: 1, usage: 2, unreachable: 3 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** An error whose one line is fit for a terminal: it names the option or thing, the problem and the remedy, no value. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly code: string;
  readonly exitCode: ExitCode;
  readonly safeMessage: string;

  constructor(code: string, message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.exitCode = exitCode;
    this.safeMessage = message;
  }
}

/** The ledger or the provider says no. */
export class RefusedError extends CliError {
  override readonly name = "RefusedError";
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(code, message, exitCodes.refused, options);
  }
}

/** The command line is not right. */
export class UsageError extends CliError {
  override readonly name = "UsageError";
  constructor(message: string, options?: ErrorOptions) {
    super("usage", message, exitCodes.usage, options);
  }
}

/** The database or the provider can't be reached. */
export class UnreachableError extends CliError {
  override readonly name = "UnreachableError";
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(code, message, exitCodes.unreachable, options);
  }
}

/** Codes of sockets, of the driver, and SQLSTATEs that mean: no conversation with this database. */
const unreachable = /^(E[A-Z_]+|CONNECT_TIMEOUT|CONNECTION_[A-Z]+|08\w{3}|28\w{3}|3D000|57P0\d|53300)$/;

/** Anything thrown, as the one line and exit code that a command ends with. */
export function asCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof ConfigError) return new UsageError(error.safeMessage, { cause: error });
  if (error instanceof QueueUnavailableError) {
    const remedy = `the queues can't be reached (${error.code}): check REDIS_URL, or DATABASE_URL where it is not set`;
    return new UnreachableError(error.code, remedy, { cause: error });
  }
  if (error instanceof QueueSetupError) {
    if (error.code === "redis-url") return new UsageError(error.safeMessage, { cause: error });
    return new RefusedError(error.code, error.safeMessage, { cause: error });
  }
  if (error instanceof LedgerError) return new RefusedError(error.code, remedyFor(error), { cause: error });
  if (error instanceof CommanderError) return new UsageError(usageLine(error), { cause: error });
  const { type, code, message } = safeError(innermost(error));
  if (code === "42P01" || code === "3F000") {
    const remedy = "the database has no tables of ours: run countersign migrate first";
    return new RefusedError("not-migrated", remedy, { cause: error });
  }
  if (typeof code === "string" && unreachable.test(code)) {
    const remedy = `PostgreSQL can't be reached (${code}): check DATABASE_URL and that the server runs`;
    return new UnreachableError(code, remedy, { cause: error });
  }
  const what = [type, code, message].filter((part) => part !== undefined).join(" ");
  return new RefusedError(String(code ?? type), `unexpected error: ${what}`, { cause: error });
}

/** Libraries wrap what the database said; the code stands on the inside. */
function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}

function remedyFor(error: LedgerError): string {
  if (error.code !== "not-found") return error.message;
  return `${error.message}: check --tenant and the id (another tenant's are not shown)`;
}

function usageLine(error: CommanderError): string {
  const line = error.message.replace(/^error: /, "").replace(/\s*\n\s*/g, " ");
  return `${line.replace(/\.$/, "")}; add --help for what this command takes`;
}
