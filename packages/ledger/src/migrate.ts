import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

/** "countersign" in hex digits: one lock for every migrator of this product. */
const migrationLock = 0x0c5_516e;

/** Not "countersign": a role of that name would find it first in its search path, and put our tables there. */
const migrationsSchema = "countersign_migrations";

const folder = fileURLToPath(new URL("../migrations", import.meta.url));

/**
 * Brings the schema up to date. Any number of processes may call it at once: one advisory lock is held, on the migrating
 * connection itself, from before the first read to after the last statement; a killed migrator's lock dies with it.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined, connect_timeout: 10, fetch_types: false });
  try {
    await client`SELECT pg_advisory_lock(${migrationLock})`;
    await applyMigrations(drizzle(client), { migrationsFolder: folder, migrationsSchema });
    await client`SELECT pg_advisory_unlock(${migrationLock})`;
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** How many migrations the database has, and how many this code brings; equal means up to date. */
export async function migrationState(databaseUrl: string): Promise<{ applied: number; expected: number }> {
  const expected = readMigrationFiles({ migrationsFolder: folder }).length;
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined, connect_timeout: 5, fetch_types: false });
  try {
    const [table] = await client<{ present: boolean }[]>`
      SELECT to_regclass(${`${migrationsSchema}.__drizzle_migrations`}) IS NOT NULL AS present`;
    if (table?.present !== true) return { applied: 0, expected };
    const [row] = await client<
      { applied: number }[]
    >`SELECT count(*)::int AS applied FROM ${client(migrationsSchema)}.__drizzle_migrations`;
    return { applied: row?.applied ?? 0, expected };
  } finally {
    await client.end({ timeout: 5 });
  }
}
