import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { afterEach, describe, expect, expectTypeOf, it } from "vitest";
import { createClient } from "./client.js";
import {
  CountersignProblem,
  type createClient as fromIndex,
  match,
  type OperationAnswer,
  RetriesExhaustedError,
} from "./index.js";
import { waitBeforeRetry } from "./retry.js";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface Seen {
  key: string | undefined;
  body: string;
  prefer: string | undefined;
}

/** A real server that answers each try by the script's next step. */
async function serverOf(...steps: ((response: ServerResponse) => void)[]) {
  const seen: Seen[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const key = request.headers["idempotency-key"];
      seen.push({ key: Array.isArray(key) ? key[0] : key, body, prefer: String(request.headers.prefer) });
      const step = steps[Math.min(seen.length, steps.length) - 1];
      step?.(response);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const waits: number[] = [];
  const client = createClient({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: "csk_test",
    timeoutMs: 300,
    pause: async (ms) => void waits.push(ms),
  });
  return { client, seen, waits };
}

const operation: OperationAnswer = {
  operationId: "0190b5a0-0000-7000-8000-000000000001",
  intentKey: "contract-1",
  action: "SEND",
  connection: "main",
  state: "CONFIRMED",
  reason: "accepted",
  sent: "yes",
  because: [],
  nextLookAt: null,
  userMessage: "The request has been sent.",
  providerRef: "sr_1",
  signingStatuses: ["SENT"],
  attempts: 1,
  waitsFor: 0,
  target: null,
  supersedes: null,
  supersededBy: null,
  basis: "proof",
  cause: null,
  evidenceNo: 1,
  archive: null,
  requestedBy: null,
  approvedBy: null,
  createdAt: "2026-01-01T00:00:00Z",
  updatedAt: "2026-01-01T00:00:00Z",
  finishedAt: "2026-01-01T00:00:00Z",
};
const ok = (response: ServerResponse): void => {
  response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(operation));
};
const refuse =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response
      .writeHead(status, { "content-type": "application/problem+json", ...headers })
      .end(JSON.stringify({ type: `/problems/${code}`, title: code, status }));
  };
const drop = (response: ServerResponse): void => {
  response.socket?.destroy();
};
const intent = {
  intentKey: "contract-1",
  action: "SEND" as const,
  payload: { documents: [{ sha256: "a".repeat(64) }], signers: [{ email: "a@example.com", role: "r", order: 1 }] },
};

describe("a try that got no answer is made again, with the same key and body", () => {
  it.each([
    ["a dropped connection", drop, 5_000],
    ["503 with Retry-After", refuse(503, "unavailable", { "retry-after": "7" }), 7_000],
    ["503 without", refuse(503, "unavailable"), 5_000],
    ["429 without Retry-After", refuse(429, "rate-limited"), 60_000],
    ["409 in progress", refuse(409, "in-progress", { "retry-after": "2" }), 2_000],
    [
      "an answer cut off",
      (response: ServerResponse) =>
        void response.writeHead(201, { "content-length": "500" }).write("{", () => response.socket?.destroy()),
      5_000,
    ],
    ["no answer in time", () => undefined, 5_000],
  ])("%s", async (_name, step, wait) => {
    const { client, seen, waits } = await serverOf(step, ok);
    expect(await client.plan(intent)).toMatchObject({ sent: "yes" });
    expect(waits).toEqual([wait]);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[0]?.key).toBe("contract-1");
  });
});

it("five tries at most, then a typed error that keeps the cause", async () => {
  const { client, seen } = await serverOf(drop);
  const error = await client.plan(intent).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RetriesExhaustedError);
  expect(error).toMatchObject({ tries: 5 });
  expect(seen).toHaveLength(5);
});

it.each([
  [409, "payload-conflict"],
  [404, "not-found"],
  [422, "invalid"],
  [401, "unauthorized"],
  [500, "internal"],
])("any other answer is given back at once: %i %s", async (status, code) => {
  const { client, seen, waits } = await serverOf(refuse(status, code));
  const error = await client.plan(intent).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CountersignProblem);
  expect(error).toMatchObject({ status, problem: { type: `/problems/${code}` } });
  expect([seen.length, waits.length]).toEqual([1, 0]);
});

it("a caller that gives up is obeyed between tries", async () => {
  const controller = new AbortController();
  const { client } = await serverOf((response) => {
    controller.abort(new Error("given up"));
    drop(response);
  });
  await expect(client.plan(intent, { signal: controller.signal })).rejects.toThrow("given up");
});

it("Retry-After is read as seconds or a date, capped, and garbage is ignored", () => {
  expect(waitBeforeRetry(503, undefined, "99999")).toBe(600_000);
  expect(waitBeforeRetry(503, undefined, "soon")).toBe(5_000);
  expect(waitBeforeRetry(503, undefined, new Date(Date.now() - 1_000).toUTCString())).toBe(0);
  expect(waitBeforeRetry(200, undefined, null)).toBeUndefined();
  expect(waitBeforeRetry(409, "payload-conflict", "1")).toBeUndefined();
});

it("asks the server to hold the answer, at most a minute", async () => {
  const { client, seen } = await serverOf(ok);
  await client.plan(intent, { waitSeconds: 500 });
  expect(seen[0]?.prefer).toBe("wait=60");
});

it("the third branch can't be forgotten", () => {
  const words = match(operation, { yes: () => "sent", no: () => "recorded", unknown: () => "being checked" });
  expect(words).toBe("sent");
  type Needed = Parameters<typeof match<string>>[1];
  expectTypeOf<{ yes: () => string; no: () => string }>().not.toExtend<Needed>();
  expectTypeOf<Awaited<ReturnType<ReturnType<typeof fromIndex>["get"]>>["sent"]>().toEqualTypeOf<
    "yes" | "no" | "unknown"
  >();
});

it("what would be two when done twice is tried once, and says to look first; the rest is tried again", async () => {
  const dropped = await serverOf(drop);
  const error = await dropped.client.hold({ who: "u-1", why: "wrong template" }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ tries: 1, message: expect.stringContaining("look before asking again") });
  expect([dropped.seen.length, dropped.waits.length]).toEqual([1, 0]);
  const busy = await serverOf(refuse(503, "unavailable"));
  await expect(
    busy.client.writePolicy({ who: "u-1", why: "x", policy: "accept-replay-risk", action: "SEND" }),
  ).rejects.toMatchObject({ status: 503 });
  expect(busy.seen).toHaveLength(1);
  const again = await serverOf(drop, (response) => void response.writeHead(204).end());
  await again.client.resolveTicket("t", { who: "u-1", resolution: "done" });
  expect(again.seen).toHaveLength(2);
});
