import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createConnection, createTenant, Ledger, recordLookupVerification } from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import { dispatch, type QueueName, type Queues } from "@countersign/queue";
import { bounded } from "../bounded.js";
import { Child } from "../child.js";
import { bareEnvironment } from "../child-env.js";
import type { Contract } from "../contracts.js";
import { FleetError, ProcessNotReadyError } from "../errors.js";
import { Fleet } from "../fleet.js";
import { LedgerProducer } from "../plan-directly.js";
import type { SimulatorProcess } from "../simulator-process.js";

/** What every measurement works on. */
export interface Bench {
  readonly ledger: Ledger;
  readonly encryptionKey: string;
  readonly queues: Queues;
  readonly simulator: SimulatorProcess;
  readonly provider: SignatureProvider;
  readonly contract: Contract;
  readonly documentFile: string;
  readonly stackEnv: Readonly<Record<string, string>>;
  readonly logDir: string;
  readonly operations: number;
  readonly concurrency: number;
}

/** One line of the table. Rates from the first claim to the last confirm, by the database's clock. */
export interface Measured {
  readonly what: "countersign" | "plain worker";
  readonly providerLatencyMs: number;
  readonly perSecond: number;
  /** Commits in the whole database while the worker worked, by operation: heartbeats and the due loop included. */
  readonly commitsPerOperation: number;
  /** Statements that the worker's own connections made, by operation. */
  readonly statementsPerOperation: number;
  /** Commits while planning, by operation. */
  readonly planCommitsPerOperation: number;
}

const planLanes = 16;
const dispatchBatch = 500;
const pollMs = 500;
const limitMs = 300_000;
/** From a disconnect to its counts in the statistics. */
const flushMs = 500;
/** The first hand-over's generation, as `packages/worker` numbers it: the due loop then knows the job. */
const firstGeneration = 1_000;

interface Counters {
  readonly commits: number;
  readonly statements: number;
}

/** Read once those who are counted have disconnected: a session that is idle keeps its last counts for ten seconds. */
async function counters({ ledger }: Bench): Promise<Counters> {
  await delay(flushMs);
  const [row] = await ledger.sql<Counters[]>`
    SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8 AS commits,
      (SELECT COALESCE(sum(calls), 0) FROM pg_stat_statements
        WHERE query ~* '(signing_operation|baseline_job)' AND query !~* 'count\\(\\*\\)')::float8 AS statements`;
  return row ?? { commits: 0, statements: 0 };
}

async function handOver({ queues, operations }: Bench, queue: QueueName, tenantId: string, ids: readonly string[]) {
  for (let from = 0; from < operations; from += dispatchBatch) {
    const jobs = ids.slice(from, from + dispatchBatch);
    await dispatch(
      queues,
      jobs.map((subjectId) => ({ queue, tenantId, kind: "operation", subjectId, generation: firstGeneration })),
    );
  }
}

async function workspace({ simulator }: Bench, name: string): Promise<string> {
  const key = `wsk_${randomBytes(18).toString("base64url")}`;
  await simulator.configure({ workspaces: [{ name, keys: [key] }] });
  return key;
}

/** N planned SENDs worked off by one submit-worker process. */
export async function measureFleet(bench: Bench, providerLatencyMs: number): Promise<Measured> {
  const { ledger, simulator, operations } = bench;
  const tenantId = `latency-${providerLatencyMs}`;
  await simulator.configure({ latencyMs: providerLatencyMs });
  await createTenant(ledger, { tenantId, ticketOwners: { default: "bench" } });
  const credential = await workspace(bench, tenantId);
  const connection = { tenantId, connectionId: "main", provider: "wesign", baseUrl: simulator.url, credential };
  await createConnection(ledger, connection);
  await recordLookupVerification(ledger, tenantId, "main", { verified: true, by: "bench", note: "bench" });
  const atStart = await counters(bench);
  const ids = await planAll(bench, tenantId);
  await handOver(bench, "submit", tenantId, ids);
  const planned = await counters(bench);
  const fleet = await Fleet.start({
    scale: { enqueuer: 0, "webhook-ingress": 0, console: 0, submit: 1, reconcile: 0, "webhook-apply": 0 },
    env: { ...bareEnvironment(), ...bench.stackEnv, LOG_LEVEL: "warn", SUBMIT_CONCURRENCY: String(bench.concurrency) },
    logDir: bench.logDir,
    say: (text) => void process.stderr.write(`${text}\n`),
  });
  await allDone(async () => {
    const [row] = await ledger.sql<{ done: number }[]>`
      SELECT count(*)::int AS done FROM signing_operation WHERE tenant_id = ${tenantId} AND state = 'CONFIRMED'`;
    return row?.done === operations;
  });
  await fleet.stop();
  const worked = await counters(bench);
  const [span] = await ledger.sql<{ seconds: number }[]>`
    SELECT EXTRACT(EPOCH FROM max(finished_at) - min(first_attempt_at))::float8 AS seconds
    FROM signing_operation WHERE tenant_id = ${tenantId}`;
  return {
    what: "countersign",
    providerLatencyMs,
    perSecond: operations / (span?.seconds ?? Number.NaN),
    commitsPerOperation: (worked.commits - planned.commits) / operations,
    statementsPerOperation: (worked.statements - planned.statements) / operations,
    planCommitsPerOperation: (planned.commits - atStart.commits) / operations,
  };
}

async function planAll(bench: Bench, tenantId: string): Promise<string[]> {
  const { provider, contract, operations, encryptionKey, stackEnv } = bench;
  const ledger = new Ledger({ databaseUrl: stackEnv.DATABASE_URL ?? "", encryptionKey, maxConnections: planLanes });
  const producer = new LedgerProducer(ledger, provider, tenantId, "main");
  await producer.uploadDocument(contract.document);
  const ids: string[] = [];
  const numbers = Array.from({ length: operations }, (_, number) => number);
  await bounded(numbers, planLanes, async (number) => {
    ids.push(await producer.send({ intent: `bench-${number}`, payload: contract.payload }));
  });
  await ledger.close();
  return ids;
}

const baselineScript = fileURLToPath(new URL("../../dist/bench/baseline-worker.js", import.meta.url));

/** The same number of calls by a plain worker: one POST, one UPDATE, nothing that survives a lost answer. */
export async function measureBaseline(bench: Bench, providerLatencyMs: number): Promise<Measured> {
  const { ledger, simulator, operations } = bench;
  const tenantId = `plain-${providerLatencyMs}`;
  await simulator.configure({ latencyMs: providerLatencyMs });
  const key = await workspace(bench, tenantId);
  await ledger.sql`CREATE TABLE IF NOT EXISTS baseline_job (id uuid PRIMARY KEY, provider_ref text, finished_at timestamptz)`;
  await ledger.sql`TRUNCATE baseline_job`;
  const ids = Array.from({ length: operations }, () => randomUUID());
  await ledger.sql`INSERT INTO baseline_job (id) SELECT value::uuid FROM jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)`;
  await handOver(bench, "notify", tenantId, ids);
  const before = await counters(bench);
  const child = new Child({
    script: baselineScript,
    env: {
      ...bareEnvironment(),
      ...bench.stackEnv,
      PROVIDER_URL: simulator.url,
      PROVIDER_KEY: key,
      DOCUMENT: bench.documentFile,
      CONCURRENCY: String(bench.concurrency),
    },
    logFile: `${bench.logDir}/baseline.log`,
  });
  if ((await child.firstMessage()) === undefined)
    throw new ProcessNotReadyError("the plain worker", "it ended", child.logTail());
  await allDone(async () => {
    const [row] = await ledger.sql<
      { left: number }[]
    >`SELECT count(*)::int AS left FROM baseline_job WHERE finished_at IS NULL`;
    return row?.left === 0;
  });
  await child.stop(2_000);
  const after = await counters(bench);
  // Its first UPDATE comes one call after its first take: for thousands of calls the same span as above.
  const [span] = await ledger.sql<{ seconds: number }[]>`
    SELECT EXTRACT(EPOCH FROM max(finished_at) - min(finished_at))::float8 AS seconds FROM baseline_job`;
  return {
    what: "plain worker",
    providerLatencyMs,
    perSecond: operations / (span?.seconds ?? Number.NaN),
    commitsPerOperation: (after.commits - before.commits) / operations,
    statementsPerOperation: (after.statements - before.statements) / operations,
    planCommitsPerOperation: 0,
  };
}

async function allDone(done: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await done())) {
    if (performance.now() > end) throw new FleetError(`not all done after ${limitMs / 1_000} s`);
    await delay(pollMs);
  }
}
