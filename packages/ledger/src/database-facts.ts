import type { Ledger } from "./database.js";

/** What a database says of itself. */
export interface DatabaseFacts {
  /** As the server names it: `16.4`. */
  version: string;
  /** The major part of it. */
  major: number;
  /** Its clock, ms since 1970. */
  nowMs: number;
  /** A standby: it answers reads and refuses every write. */
  readOnly: boolean;
}

/** The server's version and clock. One round trip, so that the clock can be compared. */
export async function readDatabaseFacts(ledger: Ledger): Promise<DatabaseFacts> {
  const [row] = await ledger.sql<DatabaseFacts[]>`
    SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
      (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
      pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS "readOnly"`;
  if (row === undefined) throw new Error("a select without a table answers with one row");
  return row;
}
