import { integerSetting } from "@countersign/runtime";

/** Read by this app beside what every worker reads. */
export const submitConfig = {
  /** Provider calls side by side in one process. */
  SUBMIT_CONCURRENCY: integerSetting("calls", { min: 1, max: 1_000, default: 50 }),
} as const;
