import { openQueues, type Queues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import { Redis } from "ioredis";
import { type Crash, type CrashPoint, type CrashStage, crashAt, figure, nameOf } from "./crash-stage.js";
import type { FleetProcess } from "./real-processes.js";
import type { Step } from "./step-proxy.js";
import type { SentEvent } from "./webhook-scene.js";

/** One connection, one job at a time, one pass of its own due loop at its start, and no heartbeat in between. */
const victimSettings = {
  DATABASE_POOL: "1",
  WEBHOOK_APPLY_CONCURRENCY: "1",
  SWEEP_MS: "60000",
  REDISPATCH_MS: "300",
  HEARTBEAT_MS: "60000",
  WORKER_DEAD_MS: "180000",
  EVENT_WAIT_MS: "600000",
};

/** A victim's own queue, empty: a logical database of the one Redis. Nobody else looks into it. */
async function ownQueue({ scene }: CrashStage): Promise<string> {
  const url = `${scene.fleet.redis.url}/1`;
  const client = new Redis(url);
  await client.flushdb();
  client.disconnect();
  return url;
}

async function withQueues(stage: CrashStage, redisUrl: string, work: (queues: Queues) => Promise<void>): Promise<void> {
  const logger = createLogger({ name: "test", level: "silent" });
  const queues = openQueues({ redisUrl, databaseUrl: stage.scene.fleet.scene.databaseUrl, logger });
  await queues.ready(5_000);
  await work(queues);
  await queues.close();
}

/** Hands the event's job over, as an ingress does after its commit. */
async function handOverJob(queues: Queues, inboxId: string): Promise<void> {
  const row = { tenantId: "acme", kind: "inbox", subjectId: inboxId, eventNo: 0, dispatches: 0 };
  const { failed } = await handOver(queues, [{ queue: "webhook-apply", ...row }]);
  if (failed > 0) throw new Error("the job could not be handed over");
}

/** Stored and due, but in no queue. */
async function store(stage: CrashStage, event: SentEvent): Promise<{ answered: number | undefined; inboxId: string }> {
  const answered = await stage.scene.deliver(stage.ingressWithoutRedis, event);
  return { answered, inboxId: (await stage.scene.inbox(event))?.inboxId ?? "" };
}

const launch = ({ scene }: CrashStage, env: Record<string, string>): Promise<FleetProcess> =>
  scene.fleet.launch("webhook-receiver", "apply-main.js", { ...victimSettings, ...env });

const jobEnded = (victim: FleetProcess): Promise<undefined> =>
  figure(victim, /countersign_jobs_total\{[^}]*outcome="completed"[^}]*\} [1-9]/);

/**
 * An applier killed while its due loop finds the row and hands it over: from the answer that brings the row to the
 * application's first statement, at which it is killed where the k-th step lies beyond that.
 */
export async function crashWhileFinding(stage: CrashStage, at: number): Promise<Crash> {
  const { scene, proxies } = stage;
  const event = scene.nextEvent();
  stage.applier.child.kill("SIGSTOP");
  const { answered, inboxId } = await store(stage, event);
  const stopped = proxies.postgres.arm({
    from: (frame) => frame.includes(inboxId),
    beyond: (frame) => frame.includes("webhook_body"),
    at,
    grain: stage.grain,
  });
  const victim = await launch(stage, {
    DATABASE_URL: proxies.postgres.through(scene.fleet.scene.databaseUrl),
    REDIS_URL: await ownQueue(stage),
  });
  const step = await stopped;
  await victim.kill("SIGKILL");
  proxies.postgres.disarm();
  const row = await scene.inbox(event);
  stage.applier.child.kill("SIGCONT");
  await scene.allInbox([event], "APPLIED");
  return crashAt(step, { series: "due loop", event, answered, row });
}

/** A kind of event, and where its row must end without further help. */
export interface Kind {
  readonly name: string;
  next(): SentEvent;
  readonly ends: "APPLIED" | "WAITING";
}

/** One run of an application up to its k-th step. */
interface Run {
  /** Undefined where the run came to its end. */
  readonly stopped: Step | undefined;
  readonly steps: readonly Step[];
  readonly point: Omit<CrashPoint, "step">;
}

async function run(stage: CrashStage, kind: Kind, at: number): Promise<Run> {
  const { scene, proxies } = stage;
  const event = kind.next();
  const redisUrl = await ownQueue(stage);
  const victim = await launch(stage, {
    DATABASE_URL: proxies.postgres.through(scene.fleet.scene.databaseUrl),
    REDIS_URL: redisUrl,
  });
  await victim.ready();
  stage.applier.child.kill("SIGSTOP");
  const { answered, inboxId } = await store(stage, event);
  const reached = proxies.postgres.arm({
    from: (frame, direction) => direction === "toTarget" && frame.includes(inboxId),
    at,
    grain: stage.grain,
  });
  await withQueues(stage, redisUrl, (queues) => handOverJob(queues, inboxId));
  const stopped = await Promise.race([reached, jobEnded(victim)]);
  const steps = [...proxies.postgres.steps];
  await victim.kill("SIGKILL");
  proxies.postgres.disarm();
  const row = await scene.inbox(event);
  stage.applier.child.kill("SIGCONT");
  await scene.allInbox([event], kind.ends);
  return { stopped, steps, point: { series: `application of ${kind.name}`, event, answered, row } };
}

/** A whole conversation, and a crash at each of its steps. */
export interface Application {
  readonly steps: readonly Step[];
  readonly points: readonly CrashPoint[];
}

/**
 * An applier killed at each step of its conversation with PostgreSQL about one event, from its first question to the
 * commit's answer. An undisturbed run says what the steps are, and each crash must fall on its step.
 * @param wanted which of the steps
 */
export async function crashWhileApplying(
  stage: CrashStage,
  kind: Kind,
  wanted: (step: Step) => boolean = () => true,
): Promise<Application> {
  const steps = await undisturbedSteps(stage, kind);
  const points: CrashPoint[] = [];
  for (const expected of steps.filter(wanted)) {
    points.push(await crashAtStep(stage, kind, steps.slice(0, expected.number)));
  }
  return { steps, points };
}

/**
 * The steps of a conversation that nothing else came in between: those that two runs agree on. On a busy machine the
 * due loop's own pass at the process's start may come late, and its statement be counted among the steps.
 */
async function undisturbedSteps(stage: CrashStage, kind: Kind): Promise<readonly Step[]> {
  const seen = new Set<string>();
  while (seen.size < 5) {
    const { steps } = await run(stage, kind, Number.POSITIVE_INFINITY);
    const conversation = steps.map(nameOf).join("\n");
    if (seen.has(conversation)) return steps;
    seen.add(conversation);
  }
  throw new Error(`no two applications went the same way:\n${[...seen].join("\n\n")}`);
}

/**
 * Stops at the last of these steps. Where another statement of the process came in between, the run counted otherwise
 * and is repeated; the last step's name alone would not tell, since many answers begin alike.
 */
async function crashAtStep(stage: CrashStage, kind: Kind, upTo: readonly Step[]): Promise<CrashPoint> {
  const expected = upTo.map(nameOf).join("\n");
  const missed: string[] = [];
  while (missed.length < 8) {
    const { stopped, point, steps } = await run(stage, kind, upTo.length);
    const went = steps.map(nameOf).join("\n");
    if (stopped !== undefined && went === expected) return { ...point, step: nameOf(stopped) };
    missed.push(went);
  }
  throw new Error(`never went\n${expected}\nbut:\n${missed.join("\n\n")}`);
}

/**
 * An applier killed with a job of the common queue in hand, at a step of its conversation with Redis (1: the job is
 * taken, and it isn't told; 2: applied, and the job's end not written; 3: written, and not told), or with PostgreSQL,
 * counted as in {@link crashWhileApplying}. The job is left to the queue's own care for the jobs of dead workers, which
 * takes its lock's time and isn't waited for here. No other applier may run.
 */
export async function crashWithJobInHand(
  stage: CrashStage,
  conversation: "postgres" | "redis",
  at: number,
): Promise<CrashPoint> {
  const { scene, proxies } = stage;
  const { fleet } = scene;
  const event = scene.nextEvent();
  const proxy = proxies[conversation];
  const victim = await launch(stage, {
    ...(conversation === "postgres"
      ? { DATABASE_URL: proxy.through(fleet.scene.databaseUrl) }
      : { REDIS_URL: proxy.through(fleet.redis.url) }),
  });
  await victim.ready();
  const { answered, inboxId } = await store(stage, event);
  const stopped = proxy.arm({
    from: (frame, direction) => (conversation === "redis" || direction === "toTarget") && frame.includes(inboxId),
    at,
    grain: "turn",
  });
  await handOverJob(fleet.queues, inboxId);
  const step = await stopped;
  await victim.kill("SIGKILL");
  proxy.disarm();
  const row = await scene.inbox(event);
  const series = `job of the common queue, applier to ${conversation === "redis" ? "Redis" : "PostgreSQL"}`;
  return { series, step: step === undefined ? "not reached" : nameOf(step), event, answered, row };
}
