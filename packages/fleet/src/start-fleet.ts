import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { environmentFile, stackEnvironment } from "./child-env.js";
import type { Cleanup } from "./cleanup.js";
import { keptKey } from "./encryption-key.js";
import { FleetError } from "./errors.js";
import { Fleet } from "./fleet.js";
import type { Scale } from "./fleet-kinds.js";
import { type RunRecord, refuseIfRunning, removeRunFile, writeRunFile } from "./run-file.js";
import { externalStack, type Stack, startEmbeddedStack } from "./stack.js";

/** What `npm start` was asked for. */
export interface StartOptions {
  readonly scale: Scale;
  /** Where run.json, logs, key and data are. */
  readonly dataDir?: string;
  readonly port?: number;
  readonly webhookPort?: number;
  readonly env: NodeJS.ProcessEnv;
}

/** A fleet that runs, and where it keeps what. */
export interface Started {
  readonly record: RunRecord;
  readonly runFile: string;
  /** For a shell; undefined where the environment names the stack already. */
  readonly envFile: string | undefined;
  readonly logDir: string;
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== "";

/**
 * Starts the fleet against the environment's stack, or the embedded one with its data kept, and resolves when every
 * process is ready. What it starts is given to `cleanup`. @throws FleetError, or what a part's start failed with
 */
export async function startFleet(
  options: StartOptions,
  say: (text: string) => void,
  cleanup: Cleanup,
  signal: AbortSignal,
): Promise<Started> {
  const home = resolve(options.dataDir ?? ".countersign");
  const logDir = join(home, "logs");
  const runFile = join(home, "run.json");
  // The database's own user must be able to pass through; what is private has its own mode.
  await mkdir(home, { recursive: true });
  await mkdir(logDir, { recursive: true, mode: 0o700 });
  await refuseIfRunning(runFile);
  cleanup.add(() => removeRunFile(runFile));
  await setAsideLogs(logDir);
  const { stack, key, embedded } = await openStack(options, home, say);
  cleanup.add(() => stack.stop());
  for (const note of stack.notes) say(note);
  signal.throwIfAborted();
  const env = { ...options.env, ...stackEnvironment(stack, key) };
  const startedAt = new Date().toISOString();
  let running: Fleet | undefined;
  const changed = (): void => {
    if (running !== undefined && !signal.aborted) {
      writeRunFile(runFile, recordOf(running, stack, startedAt)).catch((error: unknown) => say(String(error)));
    }
  };
  const fleet = await Fleet.start({
    scale: options.scale,
    env,
    logDir,
    say,
    changed,
    ports: {
      ...(options.port === undefined ? {} : { enqueuer: options.port }),
      ...(options.webhookPort === undefined ? {} : { "webhook-ingress": options.webhookPort }),
    },
  });
  cleanup.add(() => fleet.stop());
  running = fleet;
  const record = recordOf(fleet, stack, startedAt);
  await writeRunFile(runFile, record);
  const envFile = embedded ? join(home, "env") : undefined;
  if (envFile !== undefined) {
    cleanup.add(() => rm(envFile, { force: true }));
    await writeFile(envFile, environmentFile(stackEnvironment(stack, key)), { mode: 0o600 });
  }
  return { record, runFile, envFile, logDir };
}

async function openStack(
  { env, dataDir }: StartOptions,
  home: string,
  say: (text: string) => void,
): Promise<{ stack: Stack; key: string; embedded: boolean }> {
  const given = env.COUNTERSIGN_ENCRYPTION_KEY;
  if (isSet(env.DATABASE_URL)) {
    if (!isSet(given)) {
      throw new FleetError(
        "COUNTERSIGN_ENCRYPTION_KEY is missing: set it to the 32 bytes in base64 that the database was made with (a new one: openssl rand -base64 32)",
      );
    }
    return { stack: await externalStack(env.DATABASE_URL, env), key: given, embedded: false };
  }
  const keyFile = join(home, "encryption-key");
  const { key, made } = isSet(given) ? { key: given, made: false } : await keptKey(keyFile);
  if (made) say(`Made an encryption key and kept it in ${keyFile}: without it the data beside it can't be read.`);
  const keep = {
    redisDir: join(home, "redis"),
    ...(dataDir === undefined ? {} : { postgresDir: join(home, "postgres") }),
  };
  return { stack: await startEmbeddedStack({ env, keep }), key, embedded: true };
}

/** One former run's logs are kept beside this one's. */
async function setAsideLogs(logDir: string): Promise<void> {
  for (const name of await readdir(logDir)) {
    if (name.endsWith(".log")) await rename(join(logDir, name), join(logDir, `${name}.former`));
  }
}

function recordOf(fleet: Fleet, stack: Stack, startedAt: string): RunRecord {
  const api = fleet.urlOf("enqueuer");
  return {
    pid: process.pid,
    startedAt,
    api,
    docs: `${api}/docs`,
    webhooks: fleet.urlOf("webhook-ingress"),
    console: fleet.urlOf("console"),
    queues: stack.redisUrl === undefined ? "postgres" : "redis",
    processes: fleet.processes(),
  };
}
