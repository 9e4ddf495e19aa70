import { integerSetting } from "@countersign/runtime";

/** Read by this app beside what every worker reads. */
export const reconcileConfig = {
  /** Reconcile passes side by side in one process. */
  RECONCILE_CONCURRENCY: integerSetting("passes", { min: 1, max: 500, default: 20 }),
  /** How old an absence proof may be when it is acted on, ms; after it the proof is taken again. */
  ABSENCE_MAX_AGE_MS: integerSetting("milliseconds", { min: 1_000, max: 3_600_000, default: 300_000 }),
} as const;
