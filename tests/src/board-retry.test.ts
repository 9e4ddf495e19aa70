import { addOperator } from "@countersign/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FleetProcess, RealFleet, until } from "./real-processes.js";

let fleet: RealFleet;
let board: FleetProcess;
let cookie: string;

beforeAll(async () => {
  fleet = await RealFleet.start();
  await fleet.spawn("submit-worker");
  board = await fleet.spawn("console");
  const { token } = await addOperator(fleet.scene.ledger, { name: "otto", role: "operator" });
  const login = await fetch(`${board.url}/console/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}, 120_000);
afterAll(async () => {
  await fleet.stop();
});

const press = async (jobId: string, what: "retry" | "promote"): Promise<number> => {
  const url = `${board.url}/queues/api/queues/submit/${jobId}/${what}`;
  return (await fetch(url, { method: "PUT", headers: { cookie, origin: board.url } })).status;
};

const stateOf = async (jobId: string): Promise<string> => {
  const job = await fleet.queues.queue("submit").getJob(jobId);
  return job === undefined ? "gone" : await job.getState();
};

/** A SEND that went out. */
async function sent(): Promise<{ id: string; books: ReturnType<RealFleet["scene"]["books"]> }> {
  const [id = ""] = await fleet.send(1);
  await until(
    async () => (await fleet.scene.operation(id)).state,
    (state) => state === "CONFIRMED",
  );
  return { id, books: fleet.scene.books(id) };
}

it("Bull Board's Promote brings a job of a SEND that went out again: the claim finds nothing, nobody is mailed twice", async () => {
  const { id, books } = await sent();
  const data = { tenantId: "acme", kind: "operation", subjectId: id };
  await fleet.queues.queue("submit").add("operation", data, { jobId: "again", delay: 600_000 });
  expect(await press("again", "promote")).toBeLessThan(300);
  await until(
    () => stateOf("again"),
    (state) => state === "completed",
  );
  expect(fleet.scene.books(id)).toEqual(books);
  expect(await fleet.scene.operation(id)).toMatchObject({ state: "CONFIRMED", attemptNo: 1 });
}, 60_000);

it("its Retry of a failed job passes the claim, too", async () => {
  const { id, books } = await sent();
  const queue = fleet.queues.queue("submit");
  const job = await queue.add(
    "operation",
    { tenantId: "acme", kind: "operation", subjectId: "no-uuid" },
    { jobId: "bad" },
  );
  await until(
    () => stateOf("bad"),
    (state) => state === "failed",
  );
  await job.updateData({ tenantId: "acme", kind: "operation", subjectId: id });
  expect(await press("bad", "retry")).toBeLessThan(300);
  await until(
    () => stateOf("bad"),
    (state) => state === "completed",
  );
  expect(fleet.scene.books(id)).toEqual(books);
  expect(await fleet.scene.operation(id)).toMatchObject({ state: "CONFIRMED", attemptNo: 1 });
}, 60_000);
