import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { freePort, type RedisServer, startRedis, superviseChild } from "@countersign/devstack";
import { openQueues, type Queues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import { Scene } from "./harness.js";

const appPath = (app: string, entry: string): string =>
  fileURLToPath(new URL(`../../apps/${app}/dist/${entry}`, import.meta.url));

/** Windows of the real processes, shrunk in proportion; they satisfy `checkWindows`. */
const windows = {
  PROVIDER_TIMEOUT_MS: "400",
  LOOKUP_LAG_MS: "200",
  QUIESCENCE_MS: "1100",
  LEASE_MS: "1500",
  LEASE_MARGIN_MS: "200",
  ABSENCE_SPACING_MS: "50",
  SWEEP_MS: "100",
  REDISPATCH_MS: "1000",
  RECONCILE_BACKOFF_MS: "100",
  RECONCILE_BACKOFF_MAX_MS: "400",
  EVENT_WAIT_MS: "2000",
  GRACE_MS: "4000",
};

/** One process of the fleet, as it runs in production. */
export class FleetProcess {
  readonly child: ChildProcess;
  readonly port: number;
  output = "";
  constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
  }
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }
  /** Resolves with the exit code, or the signal's name. */
  exited(): Promise<number | string> {
    const { exitCode, signalCode } = this.child;
    if (exitCode !== null || signalCode !== null) return Promise.resolve(exitCode ?? signalCode ?? 0);
    return new Promise((resolve) => this.child.once("exit", (code, signal) => resolve(code ?? signal ?? 0)));
  }
  async kill(signal: NodeJS.Signals): Promise<number | string> {
    this.child.kill(signal);
    return await this.exited();
  }
  async ready(timeoutMs = 20_000): Promise<void> {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const answer = await fetch(`${this.url}/readyz`).catch(() => undefined);
      if (answer?.ok === true) return;
      if (this.child.exitCode !== null) throw new Error(`process ended with ${this.child.exitCode}:\n${this.output}`);
      if (performance.now() > until) throw new Error(`not ready: ${await answer?.text()}\n${this.output}`);
      await pause(50);
    }
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until something is true; throws with what it last saw. */
export async function until<Value>(
  look: () => Promise<Value>,
  good: (value: Value) => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<Value> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (await good(value)) return value;
    if (performance.now() > end) throw new Error(`still not so: ${JSON.stringify(value)}`);
    await pause(30);
  }
}

/** A scene whose workers are real processes on real queues. */
export class RealFleet {
  readonly scene: Scene;
  readonly redis: RedisServer;
  readonly queues: Queues;
  readonly processes: FleetProcess[] = [];

  private constructor(scene: Scene, redis: RedisServer) {
    this.scene = scene;
    this.redis = redis;
    const logger = createLogger({ name: "test", level: "silent" });
    this.queues = openQueues({ redisUrl: redis.url, databaseUrl: scene.databaseUrl, logger });
  }

  static async start(): Promise<RealFleet> {
    const [scene, redis] = await Promise.all([Scene.start(), startRedis()]);
    const fleet = new RealFleet(scene, redis);
    await fleet.queues.ready(5_000);
    return fleet;
  }

  /** Starts a process and waits until it is ready. */
  async spawn(app: string, entry = "main.js", env: Record<string, string> = {}): Promise<FleetProcess> {
    const spawned = await this.launch(app, entry, env);
    await spawned.ready();
    return spawned;
  }

  /** Starts a process; PORT in `env` chooses its port. */
  async launch(app: string, entry = "main.js", env: Record<string, string> = {}): Promise<FleetProcess> {
    const port = env.PORT === undefined ? await freePort() : Number(env.PORT);
    const child = spawn(process.execPath, [appPath(app, entry)], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: this.scene.databaseUrl,
        REDIS_URL: this.redis.url,
        COUNTERSIGN_ENCRYPTION_KEY: this.scene.encryptionKey,
        PORT: String(port),
        ...windows,
        ...env,
      },
    });
    superviseChild(child);
    const spawned = new FleetProcess(child, port);
    this.processes.push(spawned);
    return spawned;
  }

  /** Plans SENDs and hands their jobs over, as the enqueuer does. */
  async send(count: number, before: (operationId: string, index: number) => void = () => undefined): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const { operationId } = await this.scene.planSend();
      before(operationId, index);
      ids.push(operationId);
    }
    await this.handOverSubmits(ids);
    return ids;
  }

  async handOverSubmits(ids: readonly string[]): Promise<void> {
    await handOver(
      this.queues,
      ids.map((subjectId) => ({
        queue: "submit",
        tenantId: "acme",
        kind: "operation",
        subjectId,
        eventNo: 1,
        dispatches: 0,
      })),
    );
  }

  /** Waits until every one is in this state. */
  async allIn(ids: readonly string[], state: string, timeoutMs = 30_000): Promise<void> {
    await until(
      async () => {
        const rows = await this.scene.ledger.sql<{ state: string; count: number }[]>`
          SELECT state, count(*)::int AS count FROM signing_operation WHERE operation_id IN (SELECT value::uuid FROM jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)) GROUP BY state`;
        return Object.fromEntries(rows.map((row) => [row.state, row.count]));
      },
      (counts) => counts[state] === ids.length,
      timeoutMs,
    );
  }

  async stop(): Promise<void> {
    for (const each of this.processes) {
      each.child.kill("SIGCONT");
      each.child.kill("SIGKILL");
      await each.exited();
    }
    await this.queues.close();
    await this.redis.stop();
    await this.scene.stop();
  }
}
