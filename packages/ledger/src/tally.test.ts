import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { countStates, movesOfLastHour } from "./overview.js";
import { tally } from "./tally.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";
import { claimForSubmit, confirm } from "./transitions.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});

const moves = async (): Promise<Record<string, number>> => {
  const counted: Record<string, number> = {};
  for (const { from, to, count } of await movesOfLastHour(test.ledger, null)) {
    const edge = `${from} ${to}`;
    counted[edge] = (counted[edge] ?? 0) + count;
  }
  return counted;
};

it("counts every move once, however often and by however many it is brought up to date", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) ids.push(await planSend(test));
  await tally(test.ledger);
  expect(await moves()).toEqual({ "none PLANNED": 3 });
  const row = { tenantId: "acme", operationId: ids[0] ?? "", owner: randomUUID(), actor: "test", reason: "test" };
  await claimForSubmit(test.ledger, [{ ...row, leaseMs: 60_000 }]);
  await confirm(test.ledger, [
    { ...row, evidenceNo: 0, providerRef: "r", observation: {}, basis: "proof", signingStatus: "SENT" },
  ]);
  await Promise.all([tally(test.ledger), tally(test.ledger), tally(test.ledger)]);
  expect(await tally(test.ledger)).toBe(true);
  expect(await moves()).toEqual({ "none PLANNED": 3, "PLANNED IN_FLIGHT": 1, "IN_FLIGHT CONFIRMED": 1 });
  const states = await countStates(test.ledger, ["acme"]);
  expect(Object.fromEntries(states.map(({ state, count }) => [state, count]))).toEqual({ CONFIRMED: 1, PLANNED: 2 });
  expect(await countStates(test.ledger, ["nobody"])).toEqual([]);
});
