import { afterEach, expect, it } from "vitest";
import { HttpTransport } from "../http-call.js";
import { callContext, ids, payloadOf, prepared } from "../testing/requests.js";
import { bodyOf, closeServers, httpServer } from "../testing/servers.js";
import { TwoStepProvider } from "./two-step.js";

const provider = new TwoStepProvider(new HttpTransport({ keepAliveMs: 100 }));
const request = prepared(provider.prepare("SEND", payloadOf(), ids));
afterEach(closeServers);

async function poorest(onSend: { status: number; body: string } | "reset") {
  const arrivals: string[] = [];
  const server = await httpServer(async (incoming, response) => {
    await bodyOf(incoming);
    arrivals.push(`${incoming.method} ${incoming.url}`);
    expect(incoming.headers["idempotency-key"]).toBeUndefined();
    if (incoming.url === "/drafts") response.writeHead(201).end('{"id":"d_1"}');
    else if (onSend === "reset") incoming.socket.resetAndDestroy();
    else response.writeHead(onSend.status).end(onSend.body);
  });
  return { arrivals, baseUrl: server.baseUrl };
}

it("a send of two calls reports its draft before the second one", async () => {
  const { arrivals, baseUrl } = await poorest({ status: 200, body: '{"id":"d_1"}' });
  let arrivedBefore: string[] = [];
  const { call } = callContext(baseUrl, {
    reportReference: (ref, role) => {
      expect([ref, role]).toEqual(["d_1", "draft"]);
      arrivedBefore = [...arrivals];
      return Promise.resolve();
    },
  });
  expect(await provider.submit("SEND", request, call)).toEqual({ kind: "accepted", ref: "d_1", httpStatus: 200 });
  expect(arrivedBefore).toEqual(["POST /drafts"]);
  expect(arrivals).toEqual(["POST /drafts", "POST /drafts/d_1/send"]);
});

it("a lost answer to the second call is ambiguous, with the draft already known", async () => {
  const { arrivals, baseUrl } = await poorest("reset");
  const { call, reported } = callContext(baseUrl);
  expect(await provider.submit("SEND", request, call)).toMatchObject({ kind: "ambiguous" });
  expect(reported).toEqual([["d_1", "draft"]]);
  expect(arrivals).toHaveLength(2);
});

it("a draft that cannot be stored is not sent on, nor one whose worker may no longer write", async () => {
  const queued = { kind: "queued", ref: "d_1", httpStatus: 201 };
  const first = await poorest({ status: 200, body: "{}" });
  const failing = callContext(first.baseUrl, { reportReference: () => Promise.reject(new Error("no database")) });
  expect(await provider.submit("SEND", request, failing.call)).toEqual(queued);
  let mayWrite = true;
  const late = callContext(first.baseUrl, {
    mayWrite: () => mayWrite,
    reportReference: () => {
      mayWrite = false;
      return Promise.resolve();
    },
  });
  expect(await provider.submit("SEND", request, late.call)).toEqual(queued);
  expect(first.arrivals).toEqual(["POST /drafts", "POST /drafts"]);
});

it("a field that it cannot send is refused by name, and so is every other action", () => {
  expect(provider.prepare("SEND", payloadOf({ locale: "en" }), ids)).toMatchObject({ refused: true, field: "locale" });
  expect(provider.prepare("VOID", { schemaVersion: 1 }, ids)).toMatchObject({ refused: true, field: "action" });
});
