import { randomBytes } from "node:crypto";
import postgres from "postgres";

/** A database of one test's own. */
export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  /** Drops it, connections that are still open included. */
  drop(): Promise<void>;
}

/** How to make a test database. */
export interface TestDatabaseOptions {
  /** Name of a database to copy (nobody may be connected to it), for example one that is migrated already. */
  readonly template?: string;
}

/**
 * Creates the database `cs_test_<random>` on the server that `adminUrl` names (its user must be allowed to create
 * databases), holding no connection open.
 */
export async function createTestDatabase(adminUrl: string, options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const name = `cs_test_${randomBytes(8).toString("hex")}`;
  await withAdmin(adminUrl, async (sql) => {
    if (options.template === undefined) await sql`CREATE DATABASE ${sql(name)}`;
    else await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(options.template)}`;
  });
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    name,
    url: url.href,
    drop: () => withAdmin(adminUrl, (sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`),
  };
}

async function withAdmin(adminUrl: string, work: (sql: postgres.Sql) => PromiseLike<unknown>): Promise<void> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined, fetch_types: false });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}
