import { commonConfig, integerSetting, windows } from "@countersign/runtime";

/** What the enqueuer reads from its environment. */
export const enqueuerConfig = {
  ...commonConfig,
  DATABASE_POOL: integerSetting("connections", { min: 1, max: 200, default: 20 }),
  /** Largest document taken, in bytes. */
  MAX_DOCUMENT_BYTES: integerSetting("bytes", { min: 1_024, max: 200_000_000, default: 26_214_400 }),
  QUIESCENCE_MS: windows.QUIESCENCE_MS,
  GRACE_MS: integerSetting("milliseconds", { min: 100, max: 600_000, default: 10_000 }),
} as const;
