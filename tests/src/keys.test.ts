import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scene } from "./harness.js";

interface Arrival {
  method: string;
  path: string;
  key: string | undefined;
  bodySha256: string;
  body: string;
}

let scene: Scene;
let recorder: Server;
const arrivals: Arrival[] = [];
let failures = 0;

/** Records what arrives and passes it on to the simulator; the first `failures` mutations are answered 500 here. */
async function startRecorder(target: string): Promise<string> {
  recorder = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const body = Buffer.concat(chunks);
      const key = request.headers["idempotency-key"];
      if (request.method === "POST") {
        arrivals.push({
          method: request.method,
          path: request.url ?? "",
          key: Array.isArray(key) ? key.join() : key,
          bodySha256: createHash("sha256").update(body).digest("hex"),
          body: body.toString("latin1"),
        });
        if (failures > 0) {
          failures -= 1;
          response.writeHead(500).end();
          return;
        }
      }
      const headers = new Headers();
      for (const name of ["authorization", "content-type", "idempotency-key"]) {
        const value = request.headers[name];
        if (typeof value === "string") headers.set(name, value);
      }
      const answer = await fetch(new URL(request.url ?? "/", target), {
        method: request.method ?? "GET",
        headers,
        ...(body.length === 0 ? {} : { body }),
      });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
      response.end(Buffer.from(await answer.arrayBuffer()));
    });
  });
  await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
  const address = recorder.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

beforeAll(async () => {
  scene = await Scene.start();
  const url = await startRecorder(scene.simulator.url);
  await scene.ledger.sql`UPDATE provider_connection SET base_url = ${url}`;
});
afterAll(async () => {
  recorder.closeAllConnections();
  await new Promise((resolve) => recorder.close(resolve));
  await scene.stop();
});

it("every attempt carries the key that was stored before the first one, and the same bytes", async () => {
  failures = 2;
  const { operationId } = await scene.planSend({ intentKey: "marker-intent" });
  const [row] = await scene.ledger.sql<{ provider_key: string }[]>`
    SELECT provider_key FROM signing_operation WHERE operation_id = ${operationId}`;
  // Nothing that may change from attempt to attempt is part of it: not the credential, not the address.
  const operation = await scene.settle(operationId);
  expect(operation).toMatchObject({ state: "CONFIRMED", attemptNo: 3 });
  const sends = arrivals.filter((each) => each.path === "/v1/signing-requests");
  expect(sends).toHaveLength(3);
  expect(new Set(sends.map((each) => each.key))).toEqual(new Set([row?.provider_key]));
  expect(new Set(sends.map((each) => each.bodySha256)).size).toBe(1);
  expect(sends[0]?.body).toContain(operationId);
  expect(sends[0]?.body).not.toContain("marker-intent");
});

it("SEND and VOID have keys of their own, and an endpoint that reads none gets none", async () => {
  arrivals.length = 0;
  const { operationId: first } = await scene.planSend();
  const { operationId: second } = await scene.planSend();
  await scene.settle(first);
  await scene.settle(second);
  const voidId = await scene.planVoid(first);
  await scene.settle(voidId);
  const keys = await scene.ledger.sql<{ provider_key: string }[]>`
    SELECT DISTINCT provider_key FROM signing_operation WHERE operation_id::text IN (${first}, ${second}, ${voidId})`;
  expect(keys).toHaveLength(3);
  const withdraw = arrivals.find((each) => each.path.endsWith("/withdraw"));
  expect(withdraw?.key).toBeUndefined();
  const sent = arrivals.filter((each) => each.path === "/v1/signing-requests").map((each) => each.key);
  expect(new Set(sent).size).toBe(2);
});
