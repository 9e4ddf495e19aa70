import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FleetProcess } from "./real-processes.js";
import { StepProxy } from "./step-proxy.js";
import {
  type CrashPoint,
  type CrashStage,
  crashWhileApplying,
  crashWhileReceiving,
  crashWhileStoring,
  crashWithJobInHand,
  everyStep,
} from "./webhook-crash-points.js";
import { acknowledged, type SentEvent, WebhookScene } from "./webhook-scene.js";

const deep = process.env.COUNTERSIGN_DEEP === "1";
/** The fleet's interval, and the slack of a busy machine. */
const redispatchMs = 1_000;

let scene: WebhookScene;
let stage: CrashStage;
const points: CrashPoint[] = [];

const half = (text: string): string => text.slice(0, Math.floor(text.length / 2));
const parts: readonly (readonly [string, (request: { head: string; body: string }) => string])[] = [
  ["after the first byte", ({ head }) => head.slice(0, 1)],
  ["in the head", ({ head }) => half(head)],
  ["after the head", ({ head }) => head],
  ["in the body", ({ head, body }) => head + half(body)],
  ["before the last byte", ({ head, body }) => head + body.slice(0, -1)],
  ["after the last byte", ({ head, body }) => head + body],
];

async function startStage(): Promise<CrashStage> {
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
    grain: deep ? "frame" : "turn",
  };
}

async function crashEverywhere(): Promise<void> {
  points.push(
    ...(await everyStep((at) =>
      crashWhileApplying(stage, at, { kind: "", event: scene.nextEvent(), ends: "APPLIED" }),
    )),
  );
  for (const at of [1, 2, 3]) points.push(await crashWithJobInHand(stage, "redis", at));
  for (const at of [1, 3, 5, 7]) points.push(await crashWithJobInHand(stage, "postgres", at));
  stage.applier.child.kill("SIGCONT");
  for (const [name, part] of parts) points.push(await crashWhileReceiving(stage, name, part));
  for (const conversation of ["sender", "postgres", "redis"] as const) {
    points.push(...(await everyStep((at) => crashWhileStoring(stage, conversation, at))));
  }
}

beforeAll(async () => {
  scene = await WebhookScene.start({ confirmed: deep ? 300 : 90 });
  stage = await startStage();
  await crashEverywhere();
  process.stdout.write(`${table(points)}\n`);
  // A job that a dead applier held comes back when its lock has ended and the queue has looked twice.
  await scene.allInbox(
    points.map(({ event }) => event),
    "APPLIED",
    90_000,
  );
}, 900_000);
afterAll(async () => {
  const { sender, postgres, redis } = stage.proxies;
  await Promise.all([sender.stop(), postgres.stop(), redis.stop()]);
  await scene.stop();
});

const table = (of: readonly CrashPoint[]): string =>
  [
    `${of.length} crash points`,
    ...of.map(
      ({ series, step, answered, stored }) =>
        `${series} | ${step} | answered ${answered ?? "nothing"} | ${stored ? "stored" : "not stored"}`,
    ),
  ].join("\n");

describe("an ingress or an applier killed at every step between the first byte and the end of the application", () => {
  it("covers each conversation to its end", () => {
    expect(points.length).toBeGreaterThanOrEqual(12);
  });
});
