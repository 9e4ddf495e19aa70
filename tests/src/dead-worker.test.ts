import { afterAll, beforeAll, expect, it } from "vitest";
import { RealFleet, until } from "./real-processes.js";

/** The settings that ship: lease 120 s, quiescence 90 s. Nothing here may have to wait for either. */
const shipped = {
  PROVIDER_TIMEOUT_MS: "30000",
  LOOKUP_LAG_MS: "30000",
  QUIESCENCE_MS: "90000",
  LEASE_MS: "120000",
  LEASE_MARGIN_MS: "5000",
  ABSENCE_SPACING_MS: "15000",
  SWEEP_MS: "1000",
  REDISPATCH_MS: "30000",
  RECONCILE_BACKOFF_MS: "2000",
  RECONCILE_BACKOFF_MAX_MS: "300000",
  EVENT_WAIT_MS: "300000",
};

let fleet: RealFleet;
beforeAll(async () => {
  fleet = await RealFleet.start();
});
afterAll(async () => {
  await fleet.stop();
});

it("after kill -9, what had reached the provider is CONFIRMED long before its lease ends; what had not is not sent again", async () => {
  await fleet.spawn("reconcile-worker", "main.js", shipped);
  const worker = await fleet.spawn("submit-worker", "main.js", shipped);
  const ids = await fleet.send(6, (operationId, index) =>
    fleet.scene.simulator.script({ kind: index < 5 ? "hang-after-commit" : "hang", operationId }),
  );
  const [reached, notReached] = [ids.slice(0, 5), ids.slice(5)];
  await until(
    async () => ids.filter((id) => fleet.scene.books(id).arrivals > 0).length,
    (arrived) => arrived === ids.length,
  );
  const killedAt = performance.now();
  await worker.kill("SIGKILL");
  await fleet.allIn(reached, "CONFIRMED", 60_000);
  process.stdout.write(`kill -9 to CONFIRMED at shipped settings: ${Math.round(performance.now() - killedAt)} ms\n`);
  for (const id of reached) {
    expect(fleet.scene.books(id)).toMatchObject({ requests: 1, mails: 1, arrivals: 1 });
    expect((await fleet.scene.history(id)).map((line) => line.reason)).toContain("worker-died");
  }
  // Absence still waits for the lease and the window: the dead worker might only have been slow.
  const [id = ""] = notReached;
  const open = await fleet.scene.operation(id);
  expect(["UNKNOWN", "RECONCILING"]).toContain(open.state);
  expect(open.attemptNo).toBe(1);
  expect(Date.parse(open.quietFrom ?? "")).toBeGreaterThan(Date.now() + 30_000);
  expect(fleet.scene.books(id).arrivals).toBe(1);
});
