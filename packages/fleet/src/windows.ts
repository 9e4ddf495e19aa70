/**
 * The fleet's windows (`packages/runtime/src/settings.ts`), shrunk in proportion so that a fault's whole story takes
 * seconds instead of minutes. They satisfy `checkWindows`: quiescence covers deadline, slowest call and lookup lag.
 */
export const shrunkWindows = {
  PROVIDER_TIMEOUT_MS: "1500",
  LEASE_MS: "6000",
  LEASE_MARGIN_MS: "500",
  LOOKUP_LAG_MS: "500",
  QUIESCENCE_MS: "4000",
  ABSENCE_CONFIRMATIONS: "2",
  ABSENCE_SPACING_MS: "300",
  SWEEP_MS: "200",
  REDISPATCH_MS: "3000",
  RECONCILE_BACKOFF_MS: "200",
  RECONCILE_BACKOFF_MAX_MS: "1500",
  EVENT_WAIT_MS: "5000",
  GRACE_MS: "8000",
} as const;

/** The provider's own times in the same proportion, ms. A slow commit ends well inside quiescence. */
export const shrunkProvider = {
  staleLockMs: 3_000,
  slowCommitMs: 1_000,
  lookupLagMs: 400,
  webhookDelayMs: 800,
  /** Mean time between two steps of recipients. */
  lifeStepMs: 2_500,
} as const;
