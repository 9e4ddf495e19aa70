import { type Ledger, type RetentionOptions, runRetention } from "@countersign/ledger";
import type { Logger } from "@countersign/runtime";

const hourMs = 3_600_000;
/** The first run comes by chance within this, ms, so that processes that start together don't run together. */
const firstWithinMs = 300_000;

export interface RetentionTimer {
  /** No further run; one under way ends with the ledger's connections, and the next process goes on. */
  stop(): void;
}

/**
 * Runs {@link runRetention} once an hour until stopped. Any number of processes may: each thing is erased once. A failed
 * run is logged and made up for by the next.
 */
export function startRetention(
  options: Pick<RetentionOptions, "payloadDays" | "documentDays" | "bodyDays"> & { ledger: Ledger; logger: Logger },
): RetentionTimer {
  const { ledger, logger, ...days } = options;
  let stopped = false;
  let timer: NodeJS.Timeout;
  const once = async (): Promise<void> => {
    try {
      for (const { tenantId, erased } of await runRetention(ledger, days)) {
        const count = erased.payloads + erased.documents + erased.bodies;
        if (count > 0) logger.info({ tenant: tenantId, count }, "erased what had outlived its days");
      }
    } catch (error) {
      if (!stopped) logger.error({ err: error }, "retention failed: tried again in an hour");
    }
    if (!stopped) timer = setTimeout(() => void once(), hourMs);
  };
  timer = setTimeout(() => void once(), Math.random() * firstWithinMs);
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
