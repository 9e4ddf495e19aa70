import postgres from "postgres";
import { NotFoundError } from "./errors.js";
import { Keyring, type TenantKey } from "./keyring.js";

export interface LedgerOptions {
  databaseUrl: string;
  /** `COUNTERSIGN_ENCRYPTION_KEY`: 32 bytes, or their base64. */
  encryptionKey: string | Uint8Array;
  /** Connections at most. */
  maxConnections?: number;
  /** false behind a transaction-mode pooler older than PgBouncer 1.21. */
  prepare?: boolean;
  applicationName?: string;
  /** Told of every transition that was applied, by edge: for a counter. Must not throw. */
  onTransition?(edge: string, count: number): void;
}

export type Sql = postgres.Sql;
export type TransactionSql = postgres.TransactionSql;
/** Inside a transaction: the same statements, on its own connection. */
export type AnySql = postgres.Sql | postgres.TransactionSql;

/** Type OIDs of date and time: kept as text both ways, since a JS Date would lose microseconds. */
const timeOids = { date: 1082, timestamp: 1114, timestamptz: 1184 };
const asText = (value: unknown): string => String(value);

/**
 * The ledger's database and its keys. Functions of this package take it first. It holds no state that matters: two
 * processes never coordinate through it, only through the rows.
 */
export class Ledger {
  readonly sql: Sql;
  readonly keyring: Keyring;
  /** Tells whoever counts (`onTransition`). */
  readonly transitioned: (edge: string, count: number) => void;
  readonly #keys = new Map<string, TenantKey>();

  constructor(options: LedgerOptions) {
    this.keyring = new Keyring(options.encryptionKey);
    this.transitioned = (edge, count) => options.onTransition?.(edge, count);
    this.sql = postgres(options.databaseUrl, {
      max: options.maxConnections ?? 10,
      prepare: options.prepare ?? true,
      connect_timeout: 5,
      // With its delay before a reconnect the driver loses the statement that waits for it: neither result nor error, and
      // the pool's slot with it. Without, a statement fails at once while the server is away, and its row stays due.
      backoff: false,
      // Its look at the array types runs where nobody can catch its failure. We pass and read arrays as JSON.
      fetch_types: false,
      idle_timeout: 60,
      max_lifetime: 60 * 30,
      onnotice: () => undefined,
      connection: { application_name: options.applicationName ?? "countersign", TimeZone: "UTC" },
      types: {
        instant: {
          to: timeOids.timestamptz,
          from: [timeOids.date, timeOids.timestamp, timeOids.timestamptz],
          serialize: asText,
          parse: asText,
        },
      },
    });
  }

  /** The tenant's data key; one read per tenant and process. Throws {@link NotFoundError}. */
  async tenantKey(tenantId: string): Promise<TenantKey> {
    const known = this.#keys.get(tenantId);
    if (known !== undefined) return known;
    const [row] = await this.sql<{ data_key: Buffer; key_id: string }[]>`
      SELECT data_key, key_id FROM tenant WHERE tenant_id = ${tenantId}`;
    if (row === undefined) throw new NotFoundError("tenant");
    const key = this.keyring.unwrap(tenantId, row.data_key, row.key_id);
    this.#keys.set(tenantId, key);
    return key;
  }

  /** Waits for running statements up to `timeoutMs`, then closes. */
  async close(timeoutMs = 5_000): Promise<void> {
    await this.sql.end({ timeout: timeoutMs / 1000 });
  }
}

export type Parameter = string | number | boolean | null | Uint8Array;

/**
 * Runs one of the ledger's own statement texts, prepared once per connection (unless the ledger was opened with
 * `prepare: false`). JSON goes in as text and is cast in the statement, so that no driver encodes it twice.
 */
export function run<Row extends object>(sql: AnySql, text: string, parameters: readonly Parameter[]) {
  return sql.unsafe<Row[]>(text, [...parameters], { prepare: true });
}
