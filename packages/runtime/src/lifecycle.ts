import type { Logger } from "./logger.js";
import { startTracing, stopTracing } from "./tracing.js";

/** A process's two ends and how long the second may take. */
export interface ProcessOptions {
  readonly name: string;
  readonly logger: Logger;
  /** Opens connections and begins work. A failure ends the process with code 1, after `stop`. */
  start(): Promise<void>;
  /** Stops taking work, finishes what is running, closes. Must also work when `start` failed half-way. */
  stop(): Promise<void>;
  /** Longest time for `stop` in milliseconds; after it the process exits with code 1. */
  readonly graceMs: number;
}

/** Longest wait at the end for traces to be delivered, ms. */
const longestTraceFlushMs = 1_500;
const traceMarginMs = 250;

/**
 * Runs a process until it is told to stop: by SIGTERM or SIGINT, by a second signal at once, or by the end of the parent
 * that spawned it with an IPC channel. An uncaught error or unhandled rejection is logged by type and ends the process
 * with code 1 at once: its state is unknown, and the ledger holds everything that must survive.
 */
export function runProcess(options: ProcessOptions): void {
  const { name, logger } = options;
  let stopping = false;

  const exit = (code: number): never => process.exit(code);

  const stop = async (reason: string, code: number): Promise<void> => {
    if (stopping) {
      logger.warn({ reason }, "second request to stop: exiting at once");
      exit(code === 0 ? 130 : code);
    }
    stopping = true;
    logger.info({ reason, graceMs: options.graceMs }, "stopping");
    const limit = setTimeout(() => {
      logger.error({ reason, graceMs: options.graceMs }, "grace limit reached: exiting with work unfinished");
      exit(1);
    }, options.graceMs);
    const begun = performance.now();
    try {
      await options.stop();
      // Traces get what is left of the grace, never more: a receiver that hangs must not make this an unclean end.
      const left = options.graceMs - (performance.now() - begun) - traceMarginMs;
      await stopTracing(Math.min(longestTraceFlushMs, left));
      clearTimeout(limit);
      logger.info({ reason }, "stopped");
      exit(code);
    } catch (error) {
      logger.error({ err: error }, "stop failed");
      exit(1);
    }
  };

  const crash = (kind: string) => (error: unknown) => {
    logger.fatal({ err: error, kind }, "unexpected error: exiting");
    exit(1);
  };
  process.on("uncaughtException", crash("uncaughtException"));
  process.on("unhandledRejection", crash("unhandledRejection"));
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void stop(signal, 0));
  // A spawned child whose parent is gone (also by kill -9) has nobody left to stop it.
  if (process.connected) process.once("disconnect", () => void stop("parent-gone", 0));

  const start = async (): Promise<void> => {
    await startTracing(name, logger);
    if (!stopping) await options.start();
  };
  start().then(
    () => logger.info({ process: name }, "started"),
    (error: unknown) => {
      if (stopping) return;
      logger.fatal({ err: error, process: name }, "start failed");
      void stop("start-failed", 1);
    },
  );
}
