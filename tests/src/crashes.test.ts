import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { pause, RealFleet, until } from "./real-processes.js";

let fleet: RealFleet;
beforeAll(async () => {
  fleet = await RealFleet.start();
  await fleet.spawn("reconcile-worker");
});
afterAll(async () => {
  await fleet.stop();
});

const submitters = () => fleet.processes.filter((each) => each.child.spawnargs.join().includes("submit-worker"));
afterEach(async () => {
  for (const each of submitters()) {
    each.child.kill("SIGCONT");
    await each.kill("SIGKILL");
  }
});

const oneRequestEach = (ids: readonly string[]) => {
  for (const id of ids) expect(fleet.scene.books(id), id).toMatchObject({ requests: 1, mails: 1 });
};
const reasons = async (id: string) => (await fleet.scene.history(id)).map((line) => line.reason);
const arrived = (id: string) =>
  until(
    async () => fleet.scene.books(id).arrivals,
    (arrivals) => arrivals > 0,
  );

describe("a submit worker killed in the middle of its call", () => {
  it("after the provider committed: UNKNOWN by the sweeper, settled by a lookup, one request", async () => {
    const worker = await fleet.spawn("submit-worker");
    const [id = ""] = await fleet.send(1, (operationId) =>
      fleet.scene.simulator.script({ kind: "hang-after-commit", operationId }),
    );
    await arrived(id);
    await worker.kill("SIGKILL");
    await fleet.allIn([id], "CONFIRMED");
    expect(await reasons(id)).toContain("lease-expired");
    oneRequestEach([id]);
  });

  it("before it committed: proven absent, sent again by the next worker, one request", async () => {
    const worker = await fleet.spawn("submit-worker");
    const [id = ""] = await fleet.send(1, (operationId) => fleet.scene.simulator.script({ kind: "hang", operationId }));
    await arrived(id);
    await worker.kill("SIGKILL");
    await fleet.spawn("submit-worker");
    await fleet.allIn([id], "CONFIRMED");
    expect(await reasons(id)).toContain("absence-proven");
    oneRequestEach([id]);
  });
});

it("a sender stopped past its lease and continued sends nothing and writes nothing over the new truth", async () => {
  const sleeper = await fleet.spawn("submit-worker", "main.js", { SUBMIT_CONCURRENCY: "1" });
  const [id = ""] = await fleet.send(1, (operationId) =>
    fleet.scene.simulator.script({ kind: "hang-after-commit", operationId }),
  );
  await arrived(id);
  sleeper.child.kill("SIGSTOP");
  await fleet.allIn([id], "CONFIRMED");
  const settled = await fleet.scene.operation(id);
  sleeper.child.kill("SIGCONT");
  await pause(600);
  const after = await fleet.scene.operation(id);
  expect({ ...after, evidenceNo: 0, eventNo: 0, updatedAt: "", quietFrom: "" }).toEqual({
    ...settled,
    evidenceNo: 0,
    eventNo: 0,
    updatedAt: "",
    quietFrom: "",
  });
  oneRequestEach([id]);
});

describe("Redis is disposable", () => {
  it("FLUSHALL with jobs queued: everything still resolves, one request each", async () => {
    const ids = await fleet.send(40);
    const client = new Redis(fleet.redis.url);
    await client.flushall();
    client.disconnect();
    await fleet.spawn("submit-worker");
    await fleet.allIn(ids, "CONFIRMED");
    oneRequestEach(ids);
  });

  it("killed and restarted empty while workers run: everything still resolves, one request each", async () => {
    await fleet.spawn("submit-worker");
    const ids = await fleet.send(20);
    await fleet.redis.kill("SIGKILL");
    const more = await fleet.send(20);
    await pause(500);
    await fleet.redis.restart({ empty: true });
    await fleet.allIn([...ids, ...more], "CONFIRMED");
    oneRequestEach([...ids, ...more]);
  });

  it("planning does not wait for it", async () => {
    await fleet.redis.kill("SIGKILL");
    const started = performance.now();
    const { kind } = await fleet.scene.planSend();
    expect(kind).toBe("created");
    expect(performance.now() - started).toBeLessThan(5_000);
    await fleet.redis.restart();
  });
});

it("PostgreSQL killed and restarted under load: nothing is lost, nothing is doubled", async () => {
  await fleet.spawn("submit-worker");
  const ids = await fleet.send(40);
  await pause(50);
  await fleet.scene.server.kill("SIGKILL");
  await fleet.scene.server.restart();
  await fleet.allIn(ids, "CONFIRMED", 25_000);
  oneRequestEach(ids);
});

describe("SIGTERM", () => {
  it("finishes what is in flight, takes nothing new, and exits 0", async () => {
    // Within its grace: a slow machine must not cut it short, as it may.
    const worker = await fleet.spawn("submit-worker", "main.js", { GRACE_MS: "20000" });
    const ids = await fleet.send(10, (operationId) =>
      fleet.scene.simulator.script({ kind: "lost-response", operationId }),
    );
    expect(await worker.kill("SIGTERM")).toBe(0);
    const inFlight = await fleet.scene.ledger.sql`SELECT 1 FROM signing_operation WHERE state = 'IN_FLIGHT'`;
    expect(inFlight).toHaveLength(0);
    await fleet.spawn("submit-worker");
    await fleet.allIn(ids, "CONFIRMED");
    oneRequestEach(ids);
  });

  it("ends within the grace limit although Redis is away", async () => {
    const worker = await fleet.spawn("submit-worker");
    await fleet.redis.kill("SIGKILL");
    const code = await worker.kill("SIGTERM");
    expect([0, 1]).toContain(code);
    await fleet.redis.restart();
  });
});
