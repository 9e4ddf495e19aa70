import { type DatabaseFacts, type Ledger, migrationState, readDatabaseFacts } from "@countersign/ledger";
import { clockFinding } from "./clock.js";
import { type Finding, finding } from "./finding.js";

/** PostgreSQL releases that this product is tested on. */
const oldestMajor = 14;
const newestMajor = 18;

/** The database itself: version, writable, clock. Throws what the driver throws where there is no conversation. */
export async function lookAtDatabase(ledger: Ledger): Promise<Finding[]> {
  // The first statement opens the connection, which would count as a difference of the clocks.
  await readDatabaseFacts(ledger);
  const before = Date.now();
  const facts = await readDatabaseFacts(ledger);
  const oursMs = (before + Date.now()) / 2;
  return [
    versionFinding(facts),
    ...(facts.readOnly
      ? [
          finding("fail", "database", "it takes no writes: a standby, or read-only by default", {
            remedy: "point DATABASE_URL at the primary",
          }),
        ]
      : []),
    clockFinding("database-clock", "PostgreSQL", facts.nowMs - oursMs),
  ];
}

function versionFinding({ version, major }: DatabaseFacts): Finding {
  const what = `PostgreSQL ${version}`;
  if (major < oldestMajor) {
    return finding("fail", "database", what, { remedy: `it is too old: upgrade to ${oldestMajor} or later` });
  }
  if (major > newestMajor) {
    return finding("warn", "database", what, {
      remedy: `this build is tested up to ${newestMajor}: upgrade Countersign`,
    });
  }
  return finding("ok", "database", what);
}

/** Whether the schema is the one that this build works with. */
export async function lookAtMigrations(databaseUrl: string): Promise<Finding> {
  const { applied, expected } = await migrationState(databaseUrl);
  const what = `${applied} of ${expected} migrations are applied`;
  if (applied < expected) return finding("fail", "migrations", what, { remedy: "countersign migrate" });
  if (applied > expected) {
    return finding("warn", "migrations", what, {
      remedy: "the database is newer than this build: upgrade Countersign",
    });
  }
  return finding("ok", "migrations", what);
}
