import { afterAll, beforeAll, expect, it } from "vitest";
import { type FleetProcess, pause } from "./real-processes.js";
import { acknowledged, type SentEvent, WebhookScene } from "./webhook-scene.js";

const deep = process.env.COUNTERSIGN_DEEP === "1";
const requests = deep ? 1_500 : 300;
const some = Math.floor((requests * 2) / 3);
/** Deliveries that the sender has under way at once. */
const sideBySide = 16;

let scene: WebhookScene;
let ingress: FleetProcess;

beforeAll(async () => {
  scene = await WebhookScene.start({ confirmed: requests });
  ingress = await scene.ingress();
  await scene.applier();
});
afterAll(async () => {
  // Where the start failed, its own error is the one to read.
  await scene?.stop();
});

interface Stream {
  /** Attempts that were not acknowledged. */
  failed: number;
  acknowledged: SentEvent[];
}

/** Delivers every event, each until it is acknowledged; `after` is called at every acknowledgement. */
async function stream(
  to: () => { url: string },
  events: readonly SentEvent[],
  after: (soFar: Stream) => void = () => undefined,
): Promise<Stream> {
  const result: Stream = { failed: 0, acknowledged: [] };
  const waiting = [...events];
  const end = performance.now() + 120_000;
  const sender = async (): Promise<void> => {
    for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
      while (!acknowledged(await scene.deliver(to(), event))) {
        result.failed += 1;
        if (performance.now() > end) throw new Error("an event is never acknowledged");
        await pause(30);
      }
      result.acknowledged.push(event);
      after(result);
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, sender));
  return result;
}

const eventsOf = (count: number, word: "viewed" | "signed" | "completed"): SentEvent[] =>
  Array.from({ length: count }, (_, index) => scene.event(index, word));

/** All are applied, and what was committed on the way is one row, one end and one change of status for each. */
async function appliedOnce(events: readonly SentEvent[], before: Record<string, number>): Promise<void> {
  await scene.allInbox(events, "APPLIED", 60_000);
  const { stored = 0, settled = 0, status = 0 } = before;
  expect(await scene.totals()).toEqual({
    ...before,
    stored: stored + events.length,
    settled: settled + events.length,
    status: status + events.length,
  });
}

it(`PostgreSQL killed and restarted in the middle of ${some} deliveries: nothing acknowledged is lost, nothing is applied twice`, async () => {
  const { server } = scene.fleet.scene;
  const before = await scene.totals();
  const events = eventsOf(some, "viewed");
  let outage: Promise<void> | undefined;
  const { failed, acknowledged: all } = await stream(
    () => ingress,
    events,
    (soFar) => {
      if (soFar.acknowledged.length < some / 3) return;
      outage ??= server.kill("SIGKILL").then(() => server.restart());
    },
  );
  await outage;
  expect(failed).toBeGreaterThan(0);
  expect(all).toHaveLength(some);
  await appliedOnce(events, before);
}, 200_000);

it(`Redis away for ${some} deliveries: all are acknowledged at the first attempt, and applied once it is back`, async () => {
  const { redis } = scene.fleet;
  const before = await scene.totals();
  const events = eventsOf(some, "signed");
  await redis.kill("SIGKILL");
  const { failed, acknowledged: all } = await stream(() => ingress, events);
  expect({ failed, acknowledged: all.length }).toEqual({ failed: 0, acknowledged: some });
  await redis.restart({ empty: true });
  await appliedOnce(events, before);
}, 200_000);

it(`an ingress killed and started again and again under ${requests} deliveries: nothing acknowledged is lost, nothing is applied twice`, async () => {
  const before = await scene.totals();
  const events = eventsOf(requests, "completed");
  const port = ingress.port;
  let kills = 0;
  let restarting: Promise<void> | undefined;
  const restart = async (): Promise<void> => {
    await ingress.kill("SIGKILL");
    kills += 1;
    ingress = await scene.ingress({ PORT: String(port) });
    restarting = undefined;
  };
  const { failed, acknowledged: all } = await stream(
    () => ({ url: `http://127.0.0.1:${port}` }),
    events,
    (soFar) => {
      if (soFar.acknowledged.length >= ((kills + 1) * requests) / 5) restarting ??= restart();
    },
  );
  await restarting;
  expect(kills).toBeGreaterThanOrEqual(3);
  expect(failed).toBeGreaterThan(0);
  expect(all).toHaveLength(requests);
  await appliedOnce(events, before);
  const statuses = await scene.fleet.scene.ledger.sql<{ status: string; count: number }[]>`
    SELECT status, count(*)::int AS count FROM contract_signing GROUP BY status`;
  expect([...statuses]).toEqual([{ status: "COMPLETED", count: requests }]);
}, 200_000);
