import { createServer, type Server } from "node:net";
import { submitOperation } from "@countersign/app-submit-worker";
import { freePort } from "@countersign/devstack";
import { explain, listTickets, resumeConnection, setCredential } from "@countersign/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scene } from "./harness.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
});
afterAll(async () => {
  await scene.stop();
});

it("an expired credential pauses the connection with one owned ticket, burns no intent, and nothing is lost", async () => {
  await setCredential(scene.ledger, "acme", "main", "wsk_expired");
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1) ids.push((await scene.planSend()).operationId);
  const [first = ""] = ids;
  expect(await submitOperation(scene.submit, "acme", first)).toMatchObject({
    kind: "recorded",
    observation: "declined",
  });
  for (const id of ids) expect((await submitOperation(scene.submit, "acme", id)).kind).toBe("not-claimed");
  const states = await Promise.all(ids.map(async (id) => (await scene.operation(id)).state));
  expect(states).toEqual(["UNKNOWN", "PLANNED", "PLANNED", "PLANNED", "PLANNED"]);
  const operation = await scene.operation(first);
  expect(explain(operation, await scene.history(first)).sent).toBe("no");
  expect(await listTickets(scene.ledger, "acme")).toMatchObject([
    { kind: "connection-paused", owner: "contracts-team", subjectId: "main", reason: "unauthorized" },
  ]);

  await setCredential(scene.ledger, "acme", "main", "wsk_test");
  await resumeConnection(scene.ledger, "acme", "main");
  expect(await listTickets(scene.ledger, "acme")).toEqual([]);
  for (const id of ids) {
    await scene.ledger.sql`UPDATE signing_operation SET not_before = NULL WHERE operation_id = ${id}`;
    expect((await scene.settle(id)).state).toBe("CONFIRMED");
    expect(scene.books(id).requests).toBe(1);
  }
});

it("a provider that refuses connections is tried again without a lookup, and sent to once it is back", async () => {
  const port = await freePort();
  await scene.ledger
    .sql`UPDATE provider_connection SET base_url = ${`http://127.0.0.1:${port}`} WHERE tenant_id = 'acme'`;
  const { operationId } = await scene.planSend();
  expect(await submitOperation(scene.submit, "acme", operationId)).toMatchObject({ observation: "not-sent" });
  await scene.settle(operationId, { timeoutMs: 800 });
  const history = await scene.history(operationId);
  expect(
    history.filter((line) => line.toState === "PLANNED" && line.fromState === "RECONCILING").map((line) => line.reason),
  ).toContain("every-attempt-closed");
  await scene.ledger.sql`UPDATE provider_connection SET base_url = ${scene.simulator.url} WHERE tenant_id = 'acme'`;
  expect((await scene.settle(operationId)).state).toBe("CONFIRMED");
  expect(scene.books(operationId)).toMatchObject({ requests: 1, arrivals: 1 });
});

it("a port that accepts and says nothing proves nothing: UNKNOWN, then looked up", async () => {
  const silent: Server = createServer((socket) => void socket.on("error", () => socket.destroy()));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = silent.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  await scene.ledger.sql`UPDATE provider_connection SET base_url = ${url} WHERE tenant_id = 'acme'`;
  const { operationId } = await scene.planSend();
  expect(await submitOperation(scene.submit, "acme", operationId)).toMatchObject({
    observation: "ambiguous",
    state: "UNKNOWN",
  });
  const operation = await scene.operation(operationId);
  expect(explain(operation, await scene.history(operationId)).sent).toBe("unknown");
  await scene.ledger.sql`UPDATE provider_connection SET base_url = ${scene.simulator.url} WHERE tenant_id = 'acme'`;
  silent.close();
  expect((await scene.settle(operationId)).state).toBe("CONFIRMED");
  expect(scene.books(operationId).requests).toBe(1);
});
