import { useState } from "react";

export interface Act {
  /** Something is under way: its button is disabled. */
  busy: boolean;
  /** Why the last one failed; undefined after one that worked. */
  error: unknown;
  /** Runs what was clicked; a second click meanwhile does nothing. Never throws: see `error`. */
  run(what: () => Promise<void>): Promise<void>;
}

/** One act at a time. */
export function useAct(): Act {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async (what: () => Promise<void>): Promise<void> => {
    if (busy) return;
    setBusy(true);
    try {
      await what();
      setError(undefined);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run };
}
