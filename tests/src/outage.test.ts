import { createLogger } from "@countersign/runtime";
import { Permits, ProviderHealth } from "@countersign/worker";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scene } from "./harness.js";

const deep = process.env.COUNTERSIGN_DEEP === "1";
const count = deep ? 1_000 : 200;
/** Calls per second of the connection; the provider itself refuses a little more than that. */
const rate = 40;

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
});
afterAll(async () => {
  await scene.stop();
});

/** The most that fell into any one second. */
function busiestSecond(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  return Math.max(
    0,
    ...sorted
      .map((from, index) => sorted.slice(index).findIndex((at) => at >= from + 1_000))
      .map((n, index) => (n < 0 ? sorted.length - index : n)),
  );
}

it(`${count} operations that an outage left UNKNOWN are all resolved at the connection's rate, none sent again without proof, none twice`, async () => {
  await scene.connect("outage", { verified: true, list: true, ratePerSecond: rate });
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1)
    ids.push((await scene.planSend({ connectionId: "outage" })).operationId);
  // Half of them reach the provider and half don't; nobody learns which.
  scene.simulator.setFaults({ rates: { "lost-response": 0.5, "reset-before-commit": 0.5, "lookup-fail": 1 } });
  await scene.ledger.sql`UPDATE provider_connection SET rate_per_second = NULL WHERE connection_id = 'outage'`;
  for (let index = 0; index < count; index += 20) {
    await Promise.all(ids.slice(index, index + 20).map((id) => scene.submitOnce(id)));
  }
  await scene.ledger.sql`UPDATE provider_connection SET rate_per_second = ${rate} WHERE connection_id = 'outage'`;
  const states = async (): Promise<Record<string, number>> => {
    const rows = await scene.ledger.sql<{ state: string; count: number }[]>`
      SELECT state, count(*)::int AS count FROM signing_operation WHERE connection_id = 'outage' GROUP BY state`;
    return Object.fromEntries(rows.map((row) => [row.state, row.count]));
  };
  expect(await states()).toEqual({ UNKNOWN: count });

  const permits = new Permits(scene.ledger);
  const logger = createLogger({ name: "outage", level: "silent" });
  const circuit = { failures: 5, probeMs: 200 };
  const health = new ProviderHealth(scene.ledger, circuit, logger);
  let permitted: number[] = [];
  const permit = async (connection: Parameters<typeof permits.take>[0], maxWaitMs: number): Promise<boolean> => {
    const may = await permits.take(connection, maxWaitMs);
    if (may) permitted.push(performance.now());
    return may;
  };
  Object.assign(scene.reconcile, { permit, health, circuit, deadlineMs: 20_000, leaseMs: 60_000 });
  Object.assign(scene.submit, { permit, health, leaseMs: 20_000, circuitWaitMs: 200 });

  // The outage goes on: one probe, not a thousand rows.
  const downUntil = performance.now() + 2_500;
  await scene.drive(async () => performance.now() > downUntil, { timeoutMs: 20_000 });
  const [connection] = await scene.ledger.sql<{ open: boolean }[]>`
    SELECT circuit_opened_at IS NOT NULL AS open FROM provider_connection WHERE connection_id = 'outage'`;
  expect(connection?.open).toBe(true);
  const whileDown = permitted.length;
  expect(whileDown).toBeLessThan(60);

  permitted = [];
  // The provider's own limit is the judge: it would answer 429 to a stampede.
  scene.simulator.configure({ rateLimit: { limit: Math.ceil(rate * 1.5), windowMs: 1_000 } });
  scene.simulator.setFaults({ rates: {} });
  const healedAt = performance.now();
  await scene.drive(async () => (await states()).CONFIRMED === count, { timeoutMs: deep ? 180_000 : 60_000 });
  const seconds = (performance.now() - healedAt) / 1_000;
  process.stdout.write(
    `outage: ${count} UNKNOWN resolved in ${seconds.toFixed(1)} s with ${permitted.length} calls (${whileDown} while down), busiest second ${busiestSecond(permitted)} of ${rate}\n`,
  );

  expect(busiestSecond(permitted)).toBeLessThanOrEqual(Math.ceil(rate * 1.2) + 1);
  const [paused] = await scene.ledger.sql<{ pause_reason: string | null }[]>`
    SELECT pause_reason FROM provider_connection WHERE connection_id = 'outage'`;
  expect(paused?.pause_reason).not.toBe("rate-limited");
  // A first attempt that found its connection reset before its first byte is no doubt: nothing need be proven absent.
  const again = await scene.ledger.sql<{ operation_id: string; proven: boolean }[]>`
    SELECT o.operation_id, NOT EXISTS (SELECT 1 FROM operation_event e WHERE e.tenant_id = o.tenant_id AND e.operation_id = o.operation_id
      AND e.from_state = 'IN_FLIGHT' AND e.to_state = 'UNKNOWN' AND e.evidence ->> 'observation' <> 'not-sent') OR EXISTS (SELECT 1 FROM operation_event e WHERE e.tenant_id = o.tenant_id AND e.operation_id = o.operation_id
      AND e.to_state = 'PLANNED' AND e.from_state = 'RECONCILING' AND e.reason = 'absence-proven' AND e.evidence ->> 'saw' = 'found'
      AND e.evidence ->> 'matches' = '0') AS proven
    FROM signing_operation o WHERE connection_id = 'outage' AND attempt_no > 1`;
  expect(again.length).toBeGreaterThan(count / 5);
  expect(again.filter((row) => !row.proven)).toEqual([]);
  for (const id of ids) expect(scene.books(id), id).toMatchObject({ requests: 1, mails: 1 });
}, 300_000);
