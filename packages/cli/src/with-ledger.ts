import { Ledger } from "@countersign/ledger";
import { commonConfig, loadConfig } from "@countersign/runtime";
import type { CliIo } from "./io.js";

/** What a command needs to work on the ledger itself. */
const shape = {
  DATABASE_URL: commonConfig.DATABASE_URL,
  DATABASE_PREPARE: commonConfig.DATABASE_PREPARE,
  COUNTERSIGN_ENCRYPTION_KEY: commonConfig.COUNTERSIGN_ENCRYPTION_KEY,
} as const;

/** Opens the ledger for one piece of work and closes it after. */
export async function withLedger<Value>(io: CliIo, work: (ledger: Ledger) => Promise<Value>): Promise<Value> {
  const config = loadConfig(shape, io.env, { name: "countersign" });
  const ledger = new Ledger({
    databaseUrl: config.DATABASE_URL,
    encryptionKey: config.COUNTERSIGN_ENCRYPTION_KEY,
    prepare: config.DATABASE_PREPARE,
    maxConnections: 2,
    applicationName: "countersign-cli",
  });
  try {
    return await work(ledger);
  } finally {
    await ledger.close(1_000);
  }
}
