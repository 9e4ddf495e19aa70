import { randomBytes } from "node:crypto";
import { type PostgresServer, startPostgres } from "@countersign/devstack";
import { Ledger } from "@countersign/ledger";

/**
 * A temporary PostgreSQL with fsync on that counts statements by text; `CREATE EXTENSION pg_stat_statements` shows them.
 * Whoever started it stops it. @throws the errors of `startPostgres`
 */
export async function startCountedPostgres(): Promise<PostgresServer> {
  const server = await startPostgres({});
  try {
    const ledger = new Ledger({ databaseUrl: server.url, encryptionKey: randomBytes(32), maxConnections: 1 });
    await ledger.sql.unsafe("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
    await ledger.close();
    // The library is loaded at the server's start only.
    await server.restart();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}
