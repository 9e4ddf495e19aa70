import type { FleetProcess } from "./real-processes.js";
import { until } from "./real-processes.js";
import { type Step, StepProxy, type Stop } from "./step-proxy.js";
import type { SentEvent, WebhookScene } from "./webhook-scene.js";

/** One crash, and what was to be seen right after it. */
export interface CrashPoint {
  readonly series: string;
  readonly step: string;
  readonly event: SentEvent;
  /** What the sender was answered before the crash. */
  readonly answered: number | undefined;
  /** The event's row in the inbox right after the crash. */
  readonly row: { readonly status: string; readonly dueInMs: number | null } | undefined;
}

/** The proxies that a victim's conversations go through. */
export interface Proxies {
  readonly sender: StepProxy;
  readonly postgres: StepProxy;
  readonly redis: StepProxy;
}

/** Who is there besides the victims. */
export interface CrashStage {
  readonly scene: WebhookScene;
  readonly proxies: Proxies;
  /** Takes the senders' further attempts. */
  readonly ingress: FleetProcess;
  /** Reaches no Redis: its events are in no queue. */
  readonly ingressWithoutRedis: FleetProcess;
  /** Stopped while an applier is the victim, so that the victim gets the work; then goes on. */
  readonly applier: FleetProcess;
  readonly grain: Stop["grain"];
}

export async function startStage(scene: WebhookScene, grain: Stop["grain"]): Promise<CrashStage> {
  const { fleet } = scene;
  return {
    scene,
    proxies: {
      sender: await StepProxy.start({ port: 0, protocol: "chunks" }),
      postgres: await StepProxy.start({ port: fleet.scene.server.port, protocol: "postgres" }),
      redis: await StepProxy.start({ port: fleet.redis.port, protocol: "chunks" }),
    },
    ingress: await scene.ingress(),
    ingressWithoutRedis: await scene.ingress({ REDIS_URL: "redis://127.0.0.1:1" }),
    applier: await scene.applier({ EVENT_WAIT_MS: "600000" }),
    grain,
  };
}

export async function stopProxies({ sender, postgres, redis }: Proxies): Promise<void> {
  await Promise.all([sender.stop(), postgres.stop(), redis.stop()]);
}

export const nameOf = (step: Step): string =>
  `${String(step.number).padStart(2)} before ${step.direction === "toTarget" ? "request" : "answer"} ${step.name}`;

/** A crash at the k-th step, or after the last one where there are fewer. */
export interface Crash {
  readonly point: CrashPoint;
  readonly wasLast: boolean;
}

/** Names the step; what came to its end was killed right then, which is a crash like any other. */
export function crashAt(step: Step | undefined, point: Omit<CrashPoint, "step">): Crash {
  return {
    point: { ...point, step: step === undefined ? "after the last" : nameOf(step) },
    wasLast: step === undefined,
  };
}

/** Every k from 1 until a run ends before its k-th step; that run is one of the points. */
export async function everyStep(crash: (at: number) => Promise<Crash>): Promise<CrashPoint[]> {
  const points: CrashPoint[] = [];
  for (;;) {
    const { point, wasLast } = await crash(points.length + 1);
    points.push(point);
    if (wasLast) return points;
  }
}

/** Waits until a process shows a figure; gives up with the process. Without a result, so that it can lose a race. */
export async function figure(of: FleetProcess, pattern: RegExp): Promise<undefined> {
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

/** A reader's table of what was covered. */
export const table = (points: readonly CrashPoint[]): string =>
  [
    `${points.length} crash points`,
    ...points.map(
      ({ series, step, answered, row }) =>
        `${series} | ${step} | answered ${answered ?? "nothing"} | ${row?.status ?? "not stored"}`,
    ),
  ].join("\n");
