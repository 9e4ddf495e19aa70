import { randomBytes } from "node:crypto";
import { createTestDatabase, startPostgres } from "@countersign/devstack";
import { Ledger } from "@countersign/ledger";
import { runCli } from "./program.js";

/** A PostgreSQL of its own, still empty, and a way to run command lines against it. For tests of this package. */
export interface TestCli {
  url: string;
  key: string;
  ledger: Ledger;
  run(line: readonly string[], stdin?: string | Buffer): Promise<Ran>;
  stop(): Promise<void>;
}

export interface Ran {
  code: number;
  out: string;
  err: string;
  /** The document of `--json`. */
  json(): Record<string, unknown>;
}

export async function startTestCli(): Promise<TestCli> {
  const server = await startPostgres({ durable: false });
  const { url } = await createTestDatabase(server.url);
  const key = randomBytes(32).toString("base64");
  const ledger = new Ledger({ databaseUrl: url, encryptionKey: key });
  const env = { DATABASE_URL: url, COUNTERSIGN_ENCRYPTION_KEY: key };
  return {
    url,
    key,
    ledger,
    run: (line, stdin = "") => runLine(line, env, stdin),
    stop: async () => {
      await ledger.close();
      await server.stop();
    },
  };
}

/** Runs a command line in this process. */
export async function runLine(
  line: readonly string[],
  env: Record<string, string>,
  stdin: string | Buffer = "",
): Promise<Ran> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await runCli(line, {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    stdin: async () => Buffer.from(stdin),
    env,
  });
  return ran(code, out.join("\n"), err.join("\n"));
}

export const ran = (code: number, out: string, err: string): Ran => ({
  code,
  out,
  err,
  json: () => JSON.parse(out),
});
