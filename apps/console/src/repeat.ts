/**
 * Does something at once and then again and again, with a pause in between; a failure is told and does not end it.
 * @returns stops it, and waits for what is running
 */
export function repeat(
  pauseMs: number,
  work: () => Promise<void>,
  failed: (error: unknown) => void,
): () => Promise<void> {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const once = (): void => {
    running = work()
      .catch(failed)
      .then(() => {
        if (!stopped) timer = setTimeout(once, pauseMs);
      });
  };
  once();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await running;
  };
}
