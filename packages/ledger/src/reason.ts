import { PlanRefusedError } from "./errors.js";

const longest = 500;

/**
 * Who decided and why are kept for ever, so both are needed and neither may name people by address (they stay opaque
 * ids). Throws `reason-missing` or `reason-unsuitable` (also for text that PostgreSQL can't keep), by field.
 */
export function checkReason(by: string, why: string): void {
  for (const [field, value] of [
    ["who", by],
    ["why", why],
  ] as const) {
    if (value.trim() === "")
      throw new PlanRefusedError("reason-missing", `${field} is needed and must not be empty`, { field });
    if (value.length > longest) {
      throw new PlanRefusedError("reason-unsuitable", `${field} is longer than ${longest} characters`, { field });
    }
    if (!value.isWellFormed() || value.includes("\0")) {
      throw new PlanRefusedError("reason-unsuitable", `${field} holds a character that can't be kept`, { field });
    }
    if (/[^\s@]+@[^\s@]+\.[^\s@]+/.test(value)) {
      throw new PlanRefusedError(
        "reason-unsuitable",
        `${field} holds an address: it is kept for ever, name people by their ids`,
        {
          field,
        },
      );
    }
  }
}
