/** A run was told to stop. */
export class StopRequested extends Error {
  override readonly name = "StopRequested";
  constructor(signal: NodeJS.Signals) {
    super(signal);
  }
}

const exitCodeAtOnce = 130;

/**
 * Aborted by the first Ctrl-C (or SIGTERM, or the end of the terminal); the second exits at once, and what was started
 * is then ended by the watchdog. `onFirst` says what happens.
 */
export function stopSignal(onFirst: () => void): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCodeAtOnce);
      onFirst();
      controller.abort(new StopRequested(name));
    });
  }
  return controller.signal;
}

/** Resolves when it is aborted; keeps the process alive until then. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener(
      "abort",
      () => {
        clearInterval(alive);
        resolve();
      },
      { once: true },
    );
  });
}
