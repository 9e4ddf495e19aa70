import { z } from "zod";
import { ConfigError, type ConfigProblem } from "./config.js";

/**
 * A whole number read from the environment.
 * @param what the unit or the thing counted, for the message
 */
export function integerSetting(what: string, options: { min: number; max: number; default: number }) {
  const { min, max } = options;
  return z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .default(options.default)
    .describe(`a whole number of ${what} from ${min} to ${max} (default ${options.default})`);
}

const day = 86_400_000;
const ms = (value: number, min = 1) => integerSetting("milliseconds", { min, max: day, default: value });

/** `true`/`1`/`yes` or `false`/`0`/`no`. */
export function booleanSetting(value: boolean) {
  return z
    .string()
    .toLowerCase()
    .pipe(z.enum(["true", "1", "yes", "false", "0", "no"]))
    .transform((word) => word === "true" || word === "1" || word === "yes")
    .default(value)
    .describe(`true or false (default ${value})`);
}

/** A URL of one of these schemes, as text. */
export function urlSetting(schemes: readonly string[], what: string) {
  return z
    .string()
    .refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1)))
    .describe(`${what}, a URL starting with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`);
}

/** A TCP port; 0 takes a free one. */
export function portSetting(value: number) {
  return integerSetting("a TCP port", { min: 0, max: 65_535, default: value }).describe(
    `a TCP port from 0 (any free one) to 65535 (default ${value})`,
  );
}

const encryptionKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{43}=$/)
  .transform((text) => Buffer.from(text, "base64"))
  .refine((bytes) => bytes.length === 32)
  .describe("32 random bytes in base64 (make one with: openssl rand -base64 32)");

/** Redis Sentinel and Cluster are named in the scheme: `redis+sentinel://host1,host2/master`, `redis+cluster://host1,host2`. */
const redisUrl = z
  .string()
  .regex(/^(rediss?|rediss?\+sentinel|rediss?\+cluster):\/\/\S+$/)
  .describe(
    "the Redis to queue on: redis:// or rediss:// (TLS), redis+sentinel://host:port,host:port/name or redis+cluster://host:port,host:port",
  );

const database = (what: string) => urlSetting(["postgres", "postgresql"], what);

/** What every process reads (DESIGN §11). */
export const commonConfig = {
  LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
    .default("info")
    .describe("trace, debug, info, warn, error, fatal or silent (default info)"),
  HOST: z.string().min(1).default("127.0.0.1").describe("the address to listen on (default 127.0.0.1)"),
  PORT: portSetting(0),
  DATABASE_URL: database("the PostgreSQL that holds the ledger"),
  REDIS_URL: redisUrl.optional(),
  QUEUE_DATABASE_URL: database(
    "the PostgreSQL for queues without Redis, past any pooler (only where DATABASE_URL goes through one)",
  ).optional(),
  /** Prepared statements; false behind a transaction-mode pooler that has none (PgBouncer before 1.21). */
  DATABASE_PREPARE: booleanSetting(true),
  COUNTERSIGN_ENCRYPTION_KEY: encryptionKey,
  COUNTERSIGN_ALLOW_REDIS_EVICTION: booleanSetting(false),
} as const;

/** The windows of DESIGN §3 and §11, in milliseconds unless the name says otherwise. Check them with {@link checkWindows}. */
export const windows = {
  /** Overall deadline of one provider call. */
  PROVIDER_TIMEOUT_MS: ms(30_000),
  /** How long a claim holds its row. */
  LEASE_MS: ms(120_000),
  /** What must lie between the end of the last attempt and a look that may prove absence. */
  QUIESCENCE_MS: ms(90_000),
  /** Separate looks that must agree on absence (a count). */
  ABSENCE_CONFIRMATIONS: integerSetting("looks", { min: 1, max: 20, default: 2 }),
  /** Least distance between two such looks. */
  ABSENCE_SPACING_MS: ms(15_000, 0),
  /** How long an event waits for the request it speaks of before quarantine. */
  EVENT_WAIT_MS: ms(300_000),
  /** When a dispatched row is looked at again, as insurance against a lost job. */
  REDISPATCH_MS: ms(30_000),
  /** Pause between two passes of the due loop. */
  SWEEP_MS: ms(1_000),
  /** How long a provider's lookup may lag behind its own commits. */
  LOOKUP_LAG_MS: ms(30_000, 0),
  /** What a lease must last beyond the deadline. */
  LEASE_MARGIN_MS: ms(5_000, 0),
  /** Ceiling of the first wait between inconclusive looks. */
  RECONCILE_BACKOFF_MS: ms(2_000),
  /** How often a worker says that it lives. */
  HEARTBEAT_MS: integerSetting("milliseconds", { min: 50, max: 60_000, default: 1_000 }),
  /** Silence after which a worker counts as dead: its rows are looked at then, not only when their leases end. */
  WORKER_DEAD_MS: ms(4_000),
  /** How often a request that is not over is read again where nothing else tells (FINALIZE before completion). */
  POLL_MS: ms(900_000),
  /** How often a request that is not over is asked about where no webhook tells. */
  SIGNING_POLL_MS: ms(21_600_000),
  /** Days after its end after which an operation's payload and prepared request are erased. */
  PAYLOAD_DAYS: integerSetting("days", { min: 1, max: 36_500, default: 365 }),
  /** Days after its last upload after which a document that nobody needs is erased. */
  DOCUMENT_DAYS: integerSetting("days", { min: 1, max: 36_500, default: 365 }),
  /** Days after which the raw bodies of settled webhooks are erased. */
  WEBHOOK_BODY_DAYS: integerSetting("days", { min: 1, max: 3_650, default: 30 }),
  /** Calls in a row that find the provider down before only a probe calls (a count). */
  CIRCUIT_FAILURES: integerSetting("calls", { min: 1, max: 1_000, default: 5 }),
  /** Pause before a probe of a provider that is down; doubled up to ten times this. */
  CIRCUIT_PROBE_MS: ms(3_000),
  /** Ceiling of every later wait between inconclusive looks. */
  RECONCILE_BACKOFF_MAX_MS: ms(300_000),
} as const;

/** The windows as read. */
export type Windows = { readonly [Name in keyof typeof windows]: number };

/**
 * Refuses windows under which a request could be sent twice (DESIGN §3): a look that may prove absence before a slow
 * call can have become visible, or a lease that ends before its call.
 * @param options.slowestCallMs how long a provider may work on a call after we have given up on it; the deadline when
 *   not known better
 * @throws ConfigError
 */
export function checkWindows(
  values: Windows,
  options: { readonly name: string; readonly slowestCallMs?: number },
): void {
  const slowest = options.slowestCallMs ?? values.PROVIDER_TIMEOUT_MS;
  const quiescence = values.PROVIDER_TIMEOUT_MS + slowest + values.LOOKUP_LAG_MS;
  const lease = values.PROVIDER_TIMEOUT_MS + values.LEASE_MARGIN_MS;
  const problems: ConfigProblem[] = [];
  if (values.QUIESCENCE_MS < quiescence) {
    problems.push({
      variable: "QUIESCENCE_MS",
      problem: `must be at least ${quiescence}: PROVIDER_TIMEOUT_MS + the slowest call (${slowest}) + LOOKUP_LAG_MS`,
      remedy: "Raise QUIESCENCE_MS, or lower PROVIDER_TIMEOUT_MS or LOOKUP_LAG_MS",
    });
  }
  if (values.LEASE_MS <= lease) {
    problems.push({
      variable: "LEASE_MS",
      problem: `must be more than ${lease}: PROVIDER_TIMEOUT_MS + LEASE_MARGIN_MS`,
      remedy: "Raise LEASE_MS, or lower PROVIDER_TIMEOUT_MS",
    });
  }
  if (values.WORKER_DEAD_MS < values.HEARTBEAT_MS * 3) {
    problems.push({
      variable: "WORKER_DEAD_MS",
      problem: `must be at least ${values.HEARTBEAT_MS * 3}: three times HEARTBEAT_MS`,
      remedy: "Raise WORKER_DEAD_MS, or lower HEARTBEAT_MS",
    });
  }
  if (values.RECONCILE_BACKOFF_MAX_MS < values.RECONCILE_BACKOFF_MS) {
    problems.push({
      variable: "RECONCILE_BACKOFF_MAX_MS",
      problem: "must not be less than RECONCILE_BACKOFF_MS",
      remedy: "Raise RECONCILE_BACKOFF_MAX_MS, or lower RECONCILE_BACKOFF_MS",
    });
  }
  if (problems.length > 0) throw new ConfigError(options.name, problems);
}
