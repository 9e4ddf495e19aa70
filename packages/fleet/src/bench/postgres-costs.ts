import { setTimeout as delay } from "node:timers/promises";
import type { Ledger } from "@countersign/ledger";
import { FleetError } from "../errors.js";

/** What a PostgreSQL has done since it was started. */
export interface Costs {
  readonly commits: number;
  /** BEGIN and COMMIT apart (a prepared COMMIT is counted once only), as well as what carries the bench's own mark. */
  readonly statements: number;
  readonly walBytes: number;
}

/** The same by event. */
export interface CostsPerEvent {
  readonly commitsPerEvent: number;
  readonly statementsPerEvent: number;
  readonly walBytesPerEvent: number;
}

/** From a disconnect to its counts in the statistics, ms. */
const flushMs = 500;

/**
 * Read once those who are counted have disconnected: a session that is idle keeps its last counts for ten seconds. The
 * bench's own statements carry a comment as their mark.
 */
export async function readCosts(ledger: Ledger): Promise<Costs> {
  await delay(flushMs);
  const [row] = await ledger.sql<Costs[]>`
    SELECT /* bench */ (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8 AS commits,
      (SELECT COALESCE(sum(calls), 0) FROM pg_stat_statements
        WHERE position('/* bench */' IN query) = 0 AND query !~* '^(begin|commit|rollback)')::float8 AS statements,
      (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 AS "walBytes"`;
  return row ?? { commits: 0, statements: 0, walBytes: 0 };
}

/**
 * Housekeeping first, as autovacuum would have done it a minute later: on tables without statistics, plans are guesses.
 * Then a checkpoint: the first write to a page after one carries the whole page into the WAL, so each measurement begins
 * with as many of those as the next.
 */
export async function readCostsAfresh(ledger: Ledger): Promise<Costs> {
  await ledger.sql.unsafe("VACUUM (ANALYZE) /* bench */");
  await ledger.sql.unsafe("CHECKPOINT /* bench */");
  return await readCosts(ledger);
}

/** The difference of two readings by event. */
export function costsPerEvent(before: Costs, after: Costs, events: number): CostsPerEvent {
  return {
    commitsPerEvent: (after.commits - before.commits) / events,
    statementsPerEvent: (after.statements - before.statements) / events,
    walBytesPerEvent: (after.walBytes - before.walBytes) / events,
  };
}

/** How durable a commit is here, and what one alone takes. */
export interface Durability {
  readonly fsync: string;
  readonly synchronousCommit: string;
  /** Median of single-row commits, one after the other. */
  readonly commitMs: number;
}

const probes = 100;

/** @throws FleetError where a commit would return before it is on disk: nothing measured then would be comparable */
export async function readDurability(ledger: Ledger): Promise<Durability> {
  const { sql } = ledger;
  const [row] = await sql<Omit<Durability, "commitMs">[]>`
    SELECT /* bench */ current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS "synchronousCommit"`;
  if (row?.fsync !== "on" || row.synchronousCommit !== "on")
    throw new FleetError("PostgreSQL does not wait for its disk");
  await sql`CREATE TABLE bench_probe (number int)`;
  const times: number[] = [];
  for (let number = 0; number < probes; number += 1) {
    const start = performance.now();
    await sql`INSERT /* bench */ INTO bench_probe VALUES (${number})`;
    times.push(performance.now() - start);
  }
  await sql`DROP TABLE bench_probe`;
  return { ...row, commitMs: times.sort((left, right) => left - right)[probes / 2] ?? Number.NaN };
}
