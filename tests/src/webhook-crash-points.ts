import { once } from "node:events";
import { connect } from "node:net";
import { type FleetProcess, until } from "./real-processes.js";
import type { Step, StepProxy, Stop } from "./step-proxy.js";
import { acknowledged, type SentEvent, type WebhookScene } from "./webhook-scene.js";

/** One crash, and what was to be seen right after it. */
export interface CrashPoint {
  readonly series: string;
  readonly step: string;
  readonly event: SentEvent;
  /** What the sender was answered before the crash. */
  readonly answered: number | undefined;
  /** Whether the inbox held the event right after the crash. */
  readonly stored: boolean;
  /** When the stored row would be visited again, ms from then; undefined where nothing is left to do. */
  readonly dueInMs: number | undefined;
}

/** The proxies that a victim's conversations go through. */
export interface Proxies {
  readonly sender: StepProxy;
  readonly postgres: StepProxy;
  readonly redis: StepProxy;
}

/** What a series of crash points needs: who is there besides the victims. */
export interface CrashStage {
  readonly scene: WebhookScene;
  readonly proxies: Proxies;
  /** Takes the senders' further attempts. */
  readonly ingress: FleetProcess;
  /** An ingress that reaches no Redis: its events are found by the due loop. */
  readonly ingressWithoutRedis: FleetProcess;
  /** Stopped while a victim runs, so that the victim gets the work; then goes on. */
  readonly applier: FleetProcess;
  readonly grain: Stop["grain"];
}

/** Its pool of one keeps a delivery's whole conversation on one connection, in order. */
const ingressVictim = { DATABASE_POOL: "1", WEBHOOK_ENDPOINT_CACHE_MS: "0" };
/** One connection, one job, one pass of its own due loop, and no heartbeat in between. */
const applierVictim = {
  DATABASE_POOL: "1",
  WEBHOOK_APPLY_CONCURRENCY: "1",
  SWEEP_MS: "60000",
  REDISPATCH_MS: "300",
  HEARTBEAT_MS: "60000",
  WORKER_DEAD_MS: "180000",
  EVENT_WAIT_MS: "600000",
};

const nameOf = (step: Step): string =>
  `${String(step.number).padStart(2)} before ${step.direction === "toTarget" ? "request" : "answer"} ${step.name}`;

async function look(
  { scene }: CrashStage,
  event: SentEvent,
): Promise<Pick<CrashPoint, "event" | "stored" | "dueInMs">> {
  const row = await scene.inbox(event);
  return { event, stored: row !== undefined, dueInMs: row?.dueInMs ?? undefined };
}

/** The sender goes on as its contract says: the same event, freshly signed, until a 2xx. */
async function retry({ scene, ingress }: CrashStage, event: SentEvent, answered: number | undefined): Promise<void> {
  if (!acknowledged(answered)) await scene.deliverUntilAcknowledged(ingress, event);
}

/** Ends in the middle of what the sender writes: `part` of a delivery has arrived when the ingress is killed. */
export async function crashWhileReceiving(
  stage: CrashStage,
  name: string,
  part: (request: { head: string; body: string }) => string,
): Promise<CrashPoint> {
  const { scene } = stage;
  const victim = await scene.ingress(ingressVictim);
  const event = scene.nextEvent();
  const socket = connect(victim.port, "127.0.0.1");
  await once(socket, "connect");
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString("latin1");
  });
  socket.on("error", () => undefined); // a reset is what a killed server looks like; "close" follows
  const closed = once(socket, "close");
  await new Promise<void>((resolve) => socket.write(part(scene.request(event)), () => resolve()));
  // A question on another connection, answered, shows that the process has been round its sockets since.
  await (await fetch(`${victim.url}/healthz`)).arrayBuffer();
  await victim.kill("SIGKILL");
  await closed;
  const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1];
  const answered = status === undefined ? undefined : Number(status);
  const seen = await look(stage, event);
  await retry(stage, event, answered);
  return { series: "sender to ingress", step: name, answered, ...seen };
}

/** Whose conversation an ingress is killed in, and how its end is known. */
const ingressConversations = {
  sender: {
    series: "ingress to sender",
    from: () => true,
    done: async (_: FleetProcess, sent: Promise<unknown>) => void (await sent),
  },
  postgres: {
    series: "ingress to PostgreSQL",
    from: (_: Buffer, direction: string) => direction === "toTarget",
    done: async (_: FleetProcess, sent: Promise<unknown>) => void (await sent),
  },
  redis: {
    series: "ingress to Redis",
    from: (frame: Buffer, direction: string) => direction === "toTarget" && frame.includes("webhook-apply"),
    done: async (victim: FleetProcess) => {
      await metric(victim, /countersign_webhook_hand_off_total\{[^}]*outcome="added"[^}]*\} 1/);
    },
  },
} as const;

/** An ingress killed at the k-th step of a conversation; undefined where a delivery has fewer steps. */
export async function crashWhileStoring(
  stage: CrashStage,
  conversation: keyof typeof ingressConversations,
  at: number,
): Promise<CrashPoint | undefined> {
  const { scene, proxies } = stage;
  const { series, from, done } = ingressConversations[conversation];
  const proxy = proxies[conversation];
  const { databaseUrl } = scene.fleet.scene;
  const victim = await scene.ingress({
    ...ingressVictim,
    ...(conversation === "postgres" ? { DATABASE_URL: proxy.through(databaseUrl) } : {}),
    ...(conversation === "redis" ? { REDIS_URL: proxy.through(scene.fleet.redis.url) } : {}),
  });
  if (conversation === "sender") proxy.aim(victim.port);
  const event = scene.nextEvent();
  const stopped = proxy.arm({ from, at, grain: stage.grain });
  const sent = scene.deliver(conversation === "sender" ? { url: `http://127.0.0.1:${proxy.port}` } : victim, event);
  const step = await Promise.race([stopped, done(victim, sent)]);
  await victim.kill("SIGKILL");
  proxy.disarm();
  const answered = await sent;
  const seen = await look(stage, event);
  await retry(stage, event, answered);
  return step === undefined ? undefined : { series, step: nameOf(step), answered, ...seen };
}

/**
 * An applier killed at the k-th step of its conversation with PostgreSQL, from its due loop's finding of the row to the
 * commit; undefined where there are fewer steps. Each victim has a queue of its own, which is lost with it.
 */
export async function crashWhileApplying(
  stage: CrashStage,
  at: number,
  options: { kind: string; event: SentEvent; ends: string },
): Promise<CrashPoint | undefined> {
  const { scene, proxies } = stage;
  const { fleet } = scene;
  const { event } = options;
  stage.applier.child.kill("SIGSTOP");
  const answered = await scene.deliver(stage.ingressWithoutRedis, event);
  const inboxId = (await scene.inbox(event))?.inboxId ?? "";
  const stopped = proxies.postgres.arm({ from: (frame) => frame.includes(inboxId), at, grain: stage.grain });
  const victim = await fleet.launch("webhook-receiver", "apply-main.js", {
    ...applierVictim,
    DATABASE_URL: proxies.postgres.through(fleet.scene.databaseUrl),
    REDIS_URL: `${fleet.redis.url}/${1 + (at % 15)}`,
  });
  const step = await Promise.race([stopped, jobEnded(victim)]);
  await victim.kill("SIGKILL");
  proxies.postgres.disarm();
  const seen = await look(stage, event);
  stage.applier.child.kill("SIGCONT");
  await scene.allInbox([event], options.ends);
  return step === undefined
    ? undefined
    : { series: `applier to PostgreSQL${options.kind}`, step: nameOf(step), answered, ...seen };
}

/**
 * An applier killed with a job of the common queue in hand: at a step of its conversation with Redis (1: the job is taken,
 * and it isn't told; 2: applied, and the job's end not written; 3: written, and not told), or with PostgreSQL, counted
 * from its first question about the row. The job is left to the queue's own care for the jobs of dead workers.
 */
export async function crashWithJobInHand(
  stage: CrashStage,
  conversation: "postgres" | "redis",
  at: number,
): Promise<CrashPoint> {
  const { scene, proxies } = stage;
  const { fleet } = scene;
  const event = scene.nextEvent();
  stage.applier.child.kill("SIGSTOP");
  const answered = await scene.deliver(stage.ingress, event);
  const inboxId = (await scene.inbox(event))?.inboxId ?? "";
  const proxy = proxies[conversation];
  const stopped = proxy.arm({
    from: (frame, direction) => (conversation === "redis" || direction === "toTarget") && frame.includes(inboxId),
    at,
    grain: "turn",
  });
  const victim = await fleet.launch("webhook-receiver", "apply-main.js", {
    ...applierVictim,
    ...(conversation === "postgres"
      ? { DATABASE_URL: proxy.through(fleet.scene.databaseUrl) }
      : { REDIS_URL: proxy.through(fleet.redis.url) }),
  });
  const step = await stopped;
  await victim.kill("SIGKILL");
  proxy.disarm();
  const series = conversation === "redis" ? "applier to Redis" : "applier to PostgreSQL, job of the queue";
  return { series, step: nameOf(step), answered, ...(await look(stage, event)) };
}

/** Every k from 1 until a run ends before its k-th step. */
export async function everyStep(
  crash: (at: number) => Promise<CrashPoint | undefined>,
): Promise<readonly CrashPoint[]> {
  const points: CrashPoint[] = [];
  for (;;) {
    const point = await crash(points.length + 1);
    if (point === undefined) return points;
    points.push(point);
  }
}

/** Resolves when the worker's one job has ended. Without a result, so that it can lose a race. */
const jobEnded = (worker: FleetProcess): Promise<undefined> =>
  metric(worker, /countersign_jobs_total\{[^}]*outcome="completed"[^}]*\} [1-9]/);

/** Waits until a process shows a figure; gives up with the process. */
async function metric(of: FleetProcess, pattern: RegExp): Promise<undefined> {
  await until(
    async () => {
      if (of.child.signalCode !== null) return "killed";
      const answer = await fetch(`${of.url}/metrics`).catch(() => undefined);
      return (await answer?.text().catch(() => undefined)) ?? "";
    },
    (text) => text === "killed" || pattern.test(text),
  );
  return undefined;
}
