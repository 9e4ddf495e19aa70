#!/usr/bin/env node
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { forgetFolder, watchFolder } from "@countersign/devstack";
import { Ledger, migrate } from "@countersign/ledger";
import { providerByName, providers } from "@countersign/provider";
import { migrateQueues, openQueues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import { Command, InvalidArgumentError } from "commander";
import { startCountedPostgres } from "./bench/counted-postgres.js";
import { type Bench, type Measured, measureBaseline, measureFleet } from "./bench/measure.js";
import { webhookReport } from "./bench/webhook-report.js";
import { benchWebhooks } from "./bench/webhooks.js";
import { stackEnvironment } from "./child-env.js";
import { Cleanup } from "./cleanup.js";
import { readContracts } from "./contracts.js";
import { demoDefaults } from "./demo/options.js";
import { FleetError } from "./errors.js";
import { SimulatorProcess } from "./simulator-process.js";
import { redisIfAny } from "./stack.js";
import { stopSignal } from "./stop-signals.js";

const latencies = [0, 20] as const;

const count =
  (max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d{1,6}$/.test(text) || value < 1 || value > max) throw new InvalidArgumentError(`must be 1 to ${max}`);
    return value;
  };

interface Flags {
  operations: number;
  concurrency: number;
  webhooks: boolean;
  events: number;
  json: boolean;
}

const flags = new Command()
  .name("npm run bench --")
  .description(
    "How many SENDs one submit-worker process makes a second, without faults, and how that compares with a plain BullMQ worker (one POST, one UPDATE). Real PostgreSQL with fsync on, everything on this machine.\n\n" +
      "With --webhooks: how many signed events one ingress process acknowledges a second and one applier applies, beside BullMQ's add and a transaction per request, on a PostgreSQL and a Redis of its own.",
  )
  .option("--operations <n>", "SENDs per measurement", count(100_000), 3_000)
  .option("--concurrency <n>", "calls side by side", count(500), 50)
  .option("--webhooks", "measure webhooks in instead of SENDs", false)
  .option(
    "--events <n>",
    "with --webhooks: events per measurement; a fifth as many one at a time",
    count(100_000),
    5_000,
  )
  .option("--json", "print the measurements as one line of JSON, last on standard output", false)
  .parse()
  .opts<Flags>();

const cleanup = new Cleanup();
stopSignal(() => process.exit(130));
const say = (text: string): void => void (flags.json ? process.stderr : process.stdout).write(`${text}\n`);

async function prepare(): Promise<Bench> {
  const provider = providerByName("wesign");
  if (provider === undefined) throw new FleetError("this build has no WeSign adapter");
  cleanup.add(() => providers.close());
  const logDir = await mkdtemp(join(tmpdir(), "countersign-bench-"));
  watchFolder(logDir);
  cleanup.add(async () => {
    await rm(logDir, { recursive: true, force: true });
    forgetFolder(logDir);
  });
  const [server, redis] = await Promise.all([startCountedPostgres(), redisIfAny(undefined, process.env)]);
  cleanup.add(() => server.stop());
  const redisUrl = "url" in redis ? redis.url : undefined;
  if ("url" in redis) cleanup.add(() => redis.stop());
  await migrate(server.url);
  if (redisUrl === undefined) await migrateQueues(server.url);
  const simulator = await SimulatorProcess.start({
    seed: "1",
    config: { workspaces: [], rateLimit: { limit: 10_000_000, windowMs: 60_000 } },
    logFile: join(logDir, "simulator.log"),
  });
  cleanup.add(() => simulator.stop());
  const encryptionKey = randomBytes(32).toString("base64");
  const ledger = new Ledger({ databaseUrl: server.url, encryptionKey, maxConnections: 16 });
  cleanup.add(() => ledger.close(1_000));
  await ledger.sql.unsafe("CREATE EXTENSION pg_stat_statements");
  const logger = createLogger({ name: "bench", level: "warn" });
  const queues = openQueues({ redisUrl, databaseUrl: server.url, logger });
  cleanup.add(() => queues.close());
  await queues.ready(5_000);
  const [contract] = await readContracts(demoDefaults.input, provider);
  if (contract === undefined) throw new FleetError("no contract to send");
  return {
    ledger,
    encryptionKey,
    queues,
    simulator,
    provider,
    contract,
    documentFile: fileURLToPath(new URL("../../../examples/documents/nda.pdf", import.meta.url)),
    stackEnv: stackEnvironment({ databaseUrl: server.url, redisUrl }, encryptionKey),
    logDir,
    operations: flags.operations,
    concurrency: flags.concurrency,
  };
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

function line(measured: Measured, baseline: Measured | undefined): string {
  const ratio =
    baseline === undefined ? "" : `${round(measured.perSecond / baseline.perSecond, 2)} of the plain worker`;
  return [
    measured.what.padEnd(14),
    `${measured.providerLatencyMs} ms`.padStart(7),
    String(Math.round(measured.perSecond)).padStart(8),
    measured.planCommitsPerOperation.toFixed(2).padStart(9),
    measured.commitsPerOperation.toFixed(2).padStart(9),
    measured.statementsPerOperation.toFixed(2).padStart(11),
    `  ${ratio}`,
  ].join("");
}

async function benchSends(): Promise<object> {
  const bench = await prepare();
  const queueKind = bench.queues.kind === "redis" ? "Redis" : "PostgreSQL";
  say(
    `${flags.operations} SENDs each, ${flags.concurrency} side by side, ${availableParallelism()} cores shared by worker, provider, PostgreSQL and queues (${queueKind}).`,
  );
  say("worker        provider   per s   plan:    work: commits, statements of its own");
  const all: Measured[] = [];
  for (const latencyMs of latencies) {
    const baseline = await measureBaseline(bench, latencyMs);
    const fleet = await measureFleet(bench, latencyMs);
    say(line(baseline, undefined));
    say(line(fleet, baseline));
    all.push(baseline, fleet);
  }
  return { operations: flags.operations, queues: queueKind, measured: all };
}

async function benchEvents(): Promise<object> {
  const measured = await benchWebhooks(flags.events, cleanup, (text) => void process.stderr.write(`${text} …\n`));
  say(webhookReport(measured));
  return measured;
}

async function run(): Promise<number> {
  try {
    const measured = await (flags.webhooks ? benchEvents() : benchSends());
    await cleanup.run();
    if (flags.json) process.stdout.write(`${JSON.stringify(measured)}\n`);
    return 0;
  } catch (error) {
    say(error instanceof FleetError ? error.message : String(error));
    await cleanup.run();
    return 1;
  }
}

process.exitCode = await run();
