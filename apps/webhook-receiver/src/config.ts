import { commonConfig, integerSetting } from "@countersign/runtime";

const ms = (value: number, min: number, max: number) => integerSetting("milliseconds", { min, max, default: value });

/** What the ingress reads from its environment. Times in milliseconds, sizes in bytes. */
export const ingressConfig = {
  ...commonConfig,
  DATABASE_POOL: integerSetting("connections", { min: 1, max: 200, default: 10 }),
  /** How long a stop waits for deliveries that are being stored. */
  GRACE_MS: ms(10_000, 100, 600_000),
  /** Larger bodies are refused with 413: events are small. */
  WEBHOOK_BODY_LIMIT: integerSetting("bytes", { min: 1_024, max: 64 * 1024 * 1024, default: 1024 * 1024 }),
  /** A head or body that takes longer is answered 408. Senders give a delivery ten seconds in all. */
  WEBHOOK_RECEIVE_TIMEOUT_MS: ms(5_000, 100, 60_000),
  /** Stored by then, counted from the first byte of the head, or 503. */
  WEBHOOK_ACK_TIMEOUT_MS: ms(5_000, 100, 60_000),
  /** Deliveries in hand at once; beyond it 503, so that memory and the database keep their limits. */
  WEBHOOK_MAX_IN_FLIGHT: integerSetting("deliveries", { min: 1, max: 10_000, default: 200 }),
  /** Bytes of bodies in hand at once; beyond it 503, before memory grows. */
  WEBHOOK_MAX_BYTES_IN_FLIGHT: integerSetting("bytes", {
    min: 1_024,
    max: 16 * 1024 * 1024 * 1024,
    default: 64 * 1024 * 1024,
  }),
  /** Commits of deliveries that run side by side; what arrives meanwhile shares the next one. */
  WEBHOOK_PARALLEL_COMMITS: integerSetting("commits", { min: 1, max: 100, default: 4 }),
  /** How often the ingress says that it listens. */
  HEARTBEAT_MS: ms(5_000, 50, 60_000),
  /** No ingress for this long: the sender may have given up events, so open requests are asked about, and somebody is told. */
  WEBHOOK_GAP_MS: ms(120_000, 100, 86_400_000),
  /** Deliveries of which none verifies, or none can be stored, for this long are somebody's business. */
  WEBHOOK_REFUSING_MS: ms(60_000, 100, 86_400_000),
  /** How long an endpoint's secrets are remembered: a retired secret may pass for this much longer. */
  WEBHOOK_ENDPOINT_CACHE_MS: ms(3_000, 0, 60_000),
} as const;

/** What the applier reads besides `workerConfig`. */
export const applyConfig = {
  WEBHOOK_APPLY_CONCURRENCY: integerSetting("events", { min: 1, max: 200, default: 10 }),
} as const;
