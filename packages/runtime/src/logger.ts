import { pino } from "pino";
import { safeError, sanitizeFields } from "./redaction.js";

export type { LogFields } from "./redaction.js";

/** A pino logger whose every line has passed the allow-list of `redaction.ts`. */
export type Logger = pino.Logger;

/** Where lines go; `process.stdout` when left out. */
export interface LogDestination {
  write(line: string): void;
}

export interface LoggerOptions {
  /** The process's name, on every line. */
  readonly name: string;
  /** pino level; `info` when left out. */
  readonly level?: string;
  readonly destination?: LogDestination;
}

let failures = 0;

/** How many lines could not be written or formatted in this process: for a metric, since they can't be logged. */
export function loggingFailures(): number {
  return failures;
}

/**
 * A logger that lets only listed fields through (also nested and in child bindings), drops interpolation arguments, and
 * reduces errors to type, code and stack frames: messages of libraries quote addresses, rows and URLs. Logging never
 * throws.
 */
export function createLogger(options: LoggerOptions): Logger {
  const stream = guarded(options.destination ?? standardOutput());
  const base = pino(
    {
      name: options.name,
      level: options.level ?? "info",
      timestamp: pino.stdTimeFunctions.isoTime,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      // Children made by frameworks bring serializers of their own; fields are already plain when they would run.
      serializers: { err: (value: unknown) => value },
      hooks: {
        logMethod(args, method) {
          try {
            method.apply(this, sanitizeCall(args));
          } catch {
            failures += 1;
          }
        },
      },
    },
    stream,
  );
  const child = base.child;
  const setBindings = base.setBindings;
  return Object.assign(base, {
    // pino hands child bindings to no hook. Children inherit this method, so theirs are covered too.
    child(this: Logger, bindings: pino.Bindings) {
      return child.call(this, sanitizeFields(bindings));
    },
    setBindings(this: Logger, bindings: pino.Bindings) {
      setBindings.call(this, sanitizeFields(bindings));
    },
  });
}

function standardOutput(): LogDestination {
  // Synchronous, so that the last line before an exit is written. A full or closed pipe must not end the process.
  const destination = pino.destination({ dest: 1, sync: true });
  destination.on("error", () => {
    failures += 1;
  });
  return destination;
}

function guarded(destination: LogDestination): LogDestination {
  return {
    write(line) {
      try {
        destination.write(line);
      } catch {
        failures += 1;
      }
    },
  };
}

type LogCall = [object: object, message?: string];

// pino's own forms: (message, ...args), (fields, message, ...args), (error, message, ...args).
function sanitizeCall(args: readonly unknown[]): LogCall {
  const [first, second] = args;
  if (typeof first === "string") return [{}, first];
  if (first instanceof Error) return [{ err: safeError(first) }, messageBeside(first, second)];
  if (typeof first !== "object" || first === null) return [{}, "log call without a message"];
  const error: unknown = Object.hasOwn(first, "err") ? Reflect.get(first, "err") : undefined;
  return [sanitizeFields(first), messageBeside(error, second)];
}

// Frameworks log (fields, error.message): that text is exactly what must not pass.
function messageBeside(error: unknown, message: unknown): string {
  if (typeof message !== "string") return error === undefined ? "" : "error";
  const quotes = error instanceof Error && error.message !== "" && message.includes(error.message);
  return quotes ? "error" : message;
}
