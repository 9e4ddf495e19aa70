/** A value that may stand in a log line. Text must look like an identifier, a code or a time; other text is dropped. */
export type LogValue = string | number | boolean | null | undefined | readonly string[];

const allowed = [
  // who and what
  "tenant",
  "operation",
  "subject",
  "attempt",
  "generation",
  "connection",
  "provider",
  "endpoint",
  "subscription",
  "delivery",
  "event",
  "ticket",
  "document",
  "worker",
  "owner",
  "process",
  "target",
  "supersededBy",
  // what happened
  "action",
  "outcome",
  "state",
  "from",
  "to",
  "edge",
  "reason",
  "verdict",
  "evidence",
  "cause",
  "code",
  "status",
  "kind",
  "type",
  "role",
  "scheme",
  "result",
  "check",
  "failed",
  "passed",
  "applied",
  "signal",
  "backend",
  "version",
  "level",
  "variable",
  "policy",
  // how much and how long
  "ms",
  "count",
  "added",
  "due",
  "concurrency",
  "retryAfterMs",
  "graceMs",
  "suppressed",
  // where
  "queue",
  "job",
  "pid",
  "port",
  "host",
  "url",
  "method",
  "route",
  "statusCode",
  "reqId",
  "requestId",
  "responseTime",
  "trace_id",
  "span_id",
] as const;

/** The names that pass. A field not listed here is dropped from the line, whatever it holds. */
export type LogField = (typeof allowed)[number];

/** Fields of a line, for callers who want the compiler to say which would be dropped. */
export type LogFields = { readonly [Field in LogField]?: LogValue } & { readonly err?: unknown };

const allowedNames: ReadonlySet<string> = new Set(allowed);
const identifierLike = /^[A-Za-z0-9_.:/*+-]{0,200}$/;

/** Whether text is an identifier, a code or a time, and so may leave the process in a line or a span. */
export const looksLikeIdentifier = (text: string): boolean => identifierLike.test(text);

const dropped = "[dropped]";
const maxDepth = 4;

/** The fields of a line that may be written: listed names with harmless values; `err` reduced by {@link safeError}. */
export function sanitizeFields(fields: object, depth = 0): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === "err") result.err = safeError(value);
    else if (allowedNames.has(name)) result[name] = sanitizeValue(name, value, depth);
  }
  return result;
}

function sanitizeValue(name: string, value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "number":
    case "boolean":
    case "undefined":
      return value;
    case "bigint":
      return String(value);
    case "string":
      return sanitizeText(name, value);
    case "object":
      return value === null ? null : sanitizeObject(name, value, depth);
    default:
      return dropped;
  }
}

function sanitizeText(name: string, value: string): string {
  const text = name === "url" ? withoutQuery(value) : value;
  return identifierLike.test(text) ? text : dropped;
}

function sanitizeObject(name: string, value: object, depth: number): unknown {
  if (depth >= maxDepth) return dropped;
  if (value instanceof Error) return safeError(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? dropped : value.toISOString();
  if (Array.isArray(value)) return value.slice(0, 50).map((item) => sanitizeValue(name, item, depth + 1));
  return sanitizeFields(value, depth + 1);
}

/** A URL or path without credentials, query and fragment: those hold tokens and search terms. */
function withoutQuery(text: string): string {
  if (!URL.canParse(text)) return text.split(/[?#]/, 1)[0] ?? "";
  const url = new URL(text);
  return `${url.protocol}//${url.host}${url.pathname}`;
}

/** What of an error may be logged. */
export interface SafeError {
  type: string;
  code?: string | number;
  /** Only for errors of ours, which vouch for their text by a `safeMessage`. */
  message?: string;
  /** Call sites only, without the message that leads a stack. */
  stack?: string[];
  cause?: SafeError;
}

/** Reduces anything thrown to what may be logged. Never throws, also on objects with hostile getters. */
export function safeError(error: unknown, depth = 0): SafeError {
  try {
    return reduceError(error, depth);
  } catch {
    return { type: "unreadable" };
  }
}

function reduceError(error: unknown, depth: number): SafeError {
  if (typeof error !== "object" || error === null) return { type: typeof error };
  const type = text(Reflect.get(error, "name")) ?? text(error.constructor?.name) ?? "object";
  const result: SafeError = { type };
  const code: unknown = Reflect.get(error, "code");
  if (typeof code === "number") result.code = code;
  else if (text(code) !== undefined) result.code = String(code);
  const safeMessage: unknown = Reflect.get(error, "safeMessage");
  if (typeof safeMessage === "string") result.message = safeMessage;
  const frames = error instanceof Error ? stackFrames(error) : [];
  if (frames.length > 0) result.stack = frames;
  const cause: unknown = Reflect.get(error, "cause");
  if (cause !== undefined && cause !== null && depth < maxDepth) result.cause = safeError(cause, depth + 1);
  return result;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && identifierLike.test(value) ? value : undefined;
}

// A message may itself contain lines that look like frames, so it is cut off by length and not by pattern. If the
// message was changed after the stack was taken, nothing of the stack is trusted.
function stackFrames(error: Error): string[] {
  const { stack, message } = error;
  if (typeof stack !== "string") return [];
  const at = message === "" ? 0 : stack.indexOf(message);
  if (at < 0) return [];
  return stack
    .slice(at + message.length)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("at "))
    .slice(0, 8);
}
