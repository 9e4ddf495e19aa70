import type { Logger } from "@countersign/runtime";
import { safeError } from "@countersign/runtime";

/** Takes an error of a connection that may repeat thousands of times in a second. */
export type ReportError = (error: unknown) => void;

/**
 * Logs an error the first time and then once per interval with how many were left out, by type and code: a lost store
 * otherwise fills the disk.
 */
export function createErrorReporter(
  logger: Logger,
  message: string,
  options: { readonly everyMs?: number; readonly now?: () => number } = {},
): ReportError {
  const { everyMs = 10_000, now = () => performance.now() } = options;
  const seen = new Map<string, { since: number; suppressed: number }>();
  return (error) => {
    const { type, code } = safeError(error);
    const key = `${type} ${code ?? ""}`;
    const former = seen.get(key);
    const at = now();
    if (former !== undefined && at - former.since < everyMs) {
      former.suppressed += 1;
      return;
    }
    logger.warn({ err: error, suppressed: former?.suppressed ?? 0 }, message);
    seen.set(key, { since: at, suppressed: 0 });
  };
}
