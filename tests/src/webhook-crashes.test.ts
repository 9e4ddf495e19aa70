import { handOver } from "@countersign/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Application, crashWhileApplying, crashWhileFinding, crashWithJobInHand } from "./applier-crashes.js";
import { type CrashPoint, type CrashStage, everyStep, startStage, stopProxies, table } from "./crash-stage.js";
import { crashWhileReceiving, crashWhileStoring, partsOfDelivery } from "./ingress-crashes.js";
import { acknowledged, WebhookScene } from "./webhook-scene.js";

/** Every message instead of every turn of a conversation, and every step for each kind of event. */
const deep = process.env.COUNTERSIGN_DEEP === "1";
/** The fleet's redispatch interval, ms. */
const redispatchMs = 1_000;

let scene: WebhookScene;
let stage: CrashStage;
/** Events of SENDs that are confirmed, and of SENDs in doubt. */
const plain: CrashPoint[] = [];
const doubtful: CrashPoint[] = [];
/** Of a confirmed SEND's event, which is one statement; and of an event that is evidence, which is a transaction. */
let application: Application;
let evidence: Application;

/** Appliers killed at every step; whoever goes on is there at once, and the due loop finds the row. */
async function crashAppliers(): Promise<void> {
  plain.push(...(await everyStep((at) => crashWhileFinding(stage, at))));
  application = await crashWhileApplying(stage, {
    name: "a confirmed SEND's event",
    next: () => scene.nextEvent(),
    ends: "APPLIED",
  });
  plain.push(...application.points);
  const known = new Set(application.steps.map((step) => step.name));
  const kinds = [
    { name: "evidence", next: () => scene.nextDoubtful(true), ends: "WAITING" },
    { name: "an unbound reference", next: () => scene.nextDoubtful(false), ends: "WAITING" },
  ] as const;
  for (const kind of deep ? kinds : kinds.slice(0, 1)) {
    // Otherwise only what these conversations have and the first one hasn't.
    const conversation = await crashWhileApplying(stage, kind, (step) => deep || !known.has(step.name));
    doubtful.push(...conversation.points);
    if (kind.name === "evidence") evidence = conversation;
  }
}

/** Appliers killed with a job of the common queue in hand; a fresh one comes after them all. */
async function crashWithJobs(): Promise<void> {
  await stage.applier.kill("SIGTERM");
  for (const at of [1, 2, 3]) plain.push(await crashWithJobInHand(stage, "redis", at));
  const turns = deep ? 1 : application.steps.length;
  for (const at of new Set([1, Math.ceil(turns / 2), turns - 1, turns])) {
    if (at > 0) plain.push(await crashWithJobInHand(stage, "postgres", at));
  }
  stage = { ...stage, applier: await scene.applier() };
}

async function crashIngresses(): Promise<void> {
  for (const name of Object.keys(partsOfDelivery)) plain.push(await crashWhileReceiving(stage, name));
  for (const conversation of ["sender", "postgres", "redis"] as const) {
    plain.push(...(await everyStep((at) => crashWhileStoring(stage, conversation, at))));
  }
}

beforeAll(async () => {
  scene = await WebhookScene.start(deep ? { confirmed: 400, doubtful: 300 } : { confirmed: 150, doubtful: 90 });
  stage = await startStage(scene, deep ? "frame" : "turn");
  await crashAppliers();
  await crashWithJobs();
  await crashIngresses();
  await scene.fleet.spawn("reconcile-worker");
  process.stdout.write(`${table([...plain, ...doubtful])}\n`);
}, 900_000);
/** A job that a dead applier held comes back when its lock has ended and the queue has looked twice. */
const applied = async (): Promise<void> => {
  const events = [...plain, ...doubtful].map(({ event }) => event);
  await scene.allInbox(events, "APPLIED", 90_000);
};

afterAll(async () => {
  // Where the start failed, its own error is the one to read.
  await scene?.stop();
  if (stage !== undefined) await stopProxies(stage.proxies);
});

describe("an ingress or an applier killed at every step between a delivery's first byte and the end of its application", () => {
  it("is killed at every step of every conversation", () => {
    const names = [...plain, ...doubtful].map(({ series, step }) => `${series} ${step}`);
    expect(new Set(names).size, table(plain)).toBe(names.length);
    expect(names.length, table(plain)).toBeGreaterThanOrEqual(12);
    expect(new Set([...plain, ...doubtful].map(({ series }) => series)).size).toBeGreaterThanOrEqual(8);
    const steps = evidence.steps.map(({ direction, name }) => `${direction} ${name}`);
    expect(steps).toContain("toTarget Query begin");
    expect(steps.filter((step) => /^toTarget (Parse|Query) commit/.test(step))).toHaveLength(1);
    // The last: the one statement not sent, and done and committed but its answer lost.
    const [before, after] = application.points.slice(-2).map(({ row }) => row?.status);
    expect([before, after]).toEqual(["RECEIVED", "APPLIED"]);
  });

  it("had stored what it acknowledged", () => {
    const promised = [...plain, ...doubtful].filter(({ answered }) => acknowledged(answered));
    expect(promised.length).toBeGreaterThan(0);
    for (const { row, step } of promised) expect(row, step).toBeDefined();
  });

  it("leaves no stored event without its next visit", () => {
    for (const { row, step } of [...plain, ...doubtful]) {
      if (row?.status !== "RECEIVED") continue;
      expect(row.dueInMs, step).not.toBeNull();
      expect(row.dueInMs, step).toBeLessThanOrEqual(redispatchMs);
    }
  });

  it("loses no event and applies none twice", async () => {
    await applied();
    for (const { event, series, step } of plain) {
      expect(await scene.effects(event), `${series} ${step}`).toEqual({
        stored: 1,
        settled: ["APPLIED"],
        statusChanges: ["SENT to COMPLETED"],
        evidence: [],
      });
    }
    for (const { event, series, step } of doubtful) {
      const { stored, settled, statusChanges, evidence: records } = await scene.effects(event);
      expect({ stored, settled }, `${series} ${step}`).toEqual({ stored: 1, settled: ["APPLIED"] });
      expect(statusChanges.sort(), `${series} ${step}`).toEqual(["SENT to VIEWED", "none to SENT"]);
      const mentioned = series.includes("evidence") ? ["event-with-our-metadata"] : [];
      expect(records, `${series} ${step}`).toEqual(mentioned);
    }
  }, 120_000);

  it("leaves nothing that a further delivery or a further application would add to", async () => {
    await applied();
    const events = [...plain, ...doubtful].map(({ event }) => event);
    const before = await scene.totals();
    for (const event of events) expect(await scene.deliver(stage.ingress, event)).toBe(200);
    const jobs: Parameters<typeof handOver>[1][number][] = [];
    for (const event of events) {
      const subjectId = (await scene.inbox(event))?.inboxId ?? "";
      // A generation that no job has had.
      jobs.push({ queue: "webhook-apply", tenantId: "acme", kind: "inbox", subjectId, eventNo: 0, dispatches: 900 });
    }
    expect(await handOver(scene.fleet.queues, jobs)).toEqual({ added: jobs.length, failed: 0 });
    // The queue is first in, first out: what comes after them shows that they are through.
    const last = scene.nextEvent();
    await scene.deliverUntilAcknowledged(stage.ingress, last);
    await scene.allInbox([last], "APPLIED");
    const { stored = 0, settled = 0, status = 0, ...others } = await scene.totals();
    expect({ ...others, stored: stored - 1, settled: settled - 1, status: status - 1 }).toEqual(before);
  }, 120_000);
});
