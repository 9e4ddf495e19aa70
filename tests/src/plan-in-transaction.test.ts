import { planInTransaction } from "@countersign/client/transaction";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scene } from "./harness.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.ledger.sql`CREATE TABLE contract (id text PRIMARY KEY)`;
});
afterAll(async () => {
  await scene.stop();
});

const request = (intentKey: string) => ({
  tenantId: "acme",
  intentKey,
  action: "SEND" as const,
  payload: scene.payload(),
});
const operations = (intentKey: string) => scene.ledger.sql<{ operation_id: string }[]>`
  SELECT operation_id FROM signing_operation WHERE intent_key = ${intentKey}`;

it("intent and business row commit together, and the operation is sent like any other", async () => {
  const record = await planInTransaction(scene.ledger, request("together"));
  await scene.ledger.sql.begin(async (sql) => {
    await sql`INSERT INTO contract VALUES ('together')`;
    await record(sql);
  });
  const [row] = await operations("together");
  expect((await scene.settle(row?.operation_id ?? "")).state).toBe("CONFIRMED");
});

it("or not at all", async () => {
  const record = await planInTransaction(scene.ledger, request("rolled-back"));
  const work = scene.ledger.sql.begin(async (sql) => {
    await record(sql);
    await sql`INSERT INTO contract VALUES ('together')`;
  });
  await expect(work).rejects.toMatchObject({ code: "23505" });
  expect(await operations("rolled-back")).toHaveLength(0);
});

it("the same approval again is the same operation, another one a conflict, inside a transaction too", async () => {
  const first = await planInTransaction(scene.ledger, request("twice"));
  const again = await planInTransaction(scene.ledger, request("twice"));
  const changed = await planInTransaction(scene.ledger, {
    ...request("twice"),
    payload: scene.payload({ expiresInDays: 9 }),
  });
  const kinds = await scene.ledger.sql.begin(async (sql) => [
    (await first(sql)).kind,
    (await again(sql)).kind,
    (await changed(sql)).kind,
  ]);
  expect(kinds).toEqual(["created", "existing", "conflict"]);
});
