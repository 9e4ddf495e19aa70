import type { IncomingHttpHeaders } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { assembleBody } from "../assemble.js";
import { HttpTransport } from "../http-call.js";
import { callContext, documentBytes, documentDigest, ids, payloadOf, prepared } from "../testing/requests.js";
import { bodyOf, closeServers, httpServer, rawServer } from "../testing/servers.js";
import { WeSign } from "./wesign.js";

const transport = new HttpTransport({ keepAliveMs: 100 });
const wesign = new WeSign(transport);
const send = prepared(wesign.prepare("SEND", payloadOf(), ids));
const withdraw = prepared(wesign.prepare("VOID", { schemaVersion: 1 }, ids));
const remind = prepared(wesign.prepare("RESEND", { schemaVersion: 1 }, ids));
const staging = { documents: [], template: { id: "tpl_1" } };

afterEach(closeServers);

interface Arrival {
  line: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

async function provider(status: number, answer: string) {
  const arrivals: Arrival[] = [];
  const server = await httpServer(async (request, response) => {
    arrivals.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: await bodyOf(request) });
    response.writeHead(status, { "content-type": "application/json" }).end(answer);
  });
  return { arrivals, baseUrl: server.baseUrl };
}

describe("every attempt of an operation is the same request", () => {
  it("byte for byte, with the row's key, in another process and with another token", async () => {
    const { arrivals, baseUrl } = await provider(201, '{"id":"sr_1","status":"sent"}');
    const { call } = callContext(baseUrl);
    await wesign.submit("SEND", send, call);
    const restarted = new WeSign(new HttpTransport({ keepAliveMs: 100 }));
    const stored = JSON.parse(JSON.stringify(send));
    await restarted.submit("SEND", stored, { ...call, credential: "wsk_new" });
    const [first, second] = arrivals;
    expect(first?.headers["idempotency-key"]).toBe(call.providerKey);
    expect(second?.headers["idempotency-key"]).toBe(call.providerKey);
    expect(first?.body.equals(second?.body ?? Buffer.alloc(0))).toBe(true);
    expect(first?.headers["content-type"]).toBe(second?.headers["content-type"]);
    expect(first?.headers.authorization).toBe("Bearer wsk_test");
    const assembled = assembleBody(send, new Map([[documentDigest, documentBytes]]));
    expect(first?.body.equals(assembled.bytes)).toBe(true);
  });

  it("the key goes with SEND alone: no key is seen on two routes", async () => {
    const { arrivals, baseUrl } = await provider(200, '{"id":"sr_1"}');
    const { call } = callContext(baseUrl, { targetRef: "sr_1" });
    await wesign.submit("SEND", send, { ...call, providerKey: "key-1" });
    await wesign.submit("VOID", withdraw, { ...call, providerKey: "key-2" });
    await wesign.submit("RESEND", remind, { ...call, providerKey: "key-3" });
    expect(arrivals.map(({ line, headers }) => [line, headers["idempotency-key"]])).toEqual([
      ["POST /v1/signing-requests", "key-1"],
      ["POST /v1/signing-requests/sr_1/withdraw", undefined],
      ["POST /v1/signing-requests/sr_1/remind", undefined],
    ]);
    expect(arrivals[1]?.body.byteLength).toBe(0);
  });

  it("a key that was used for another request is a conflict, never an acceptance", async () => {
    const { baseUrl } = await provider(422, '{"error":{"code":"idempotency_key_reuse","message":"x"}}');
    const observation = await wesign.submit("SEND", send, callContext(baseUrl).call);
    expect(observation).toEqual({ kind: "conflict", code: "idempotency_key_reuse", httpStatus: 422 });
  });
});

describe("a lost answer is ambiguous and arrives once", () => {
  it("the provider answers after the deadline", async () => {
    const server = await rawServer(() => undefined);
    const observation = await wesign.submit("SEND", send, callContext(server.baseUrl, { deadlineMs: 200 }).call);
    expect(observation).toEqual({ kind: "ambiguous", cause: "deadline" });
    expect(server.heads).toHaveLength(1);
  });

  it("the provider applies it and closes the socket, each time", async () => {
    const server = await rawServer((socket) => socket.resetAndDestroy());
    for (const arrivals of [1, 2, 3]) {
      expect(await wesign.submit("SEND", send, callContext(server.baseUrl).call)).toMatchObject({ kind: "ambiguous" });
      expect(server.heads).toHaveLength(arrivals);
    }
  });

  it.each([
    ["content-length 50, 9 bytes", 'HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{"id":"a"'],
    ["no last chunk", 'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\n'],
    ["{}", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"],
    ["HTML", "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>"],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n"],
  ])("a 2xx that cannot be trusted: %s", async (_, answer) => {
    const server = await rawServer((socket) => socket.end(answer));
    expect(await wesign.submit("SEND", send, callContext(server.baseUrl).call)).toMatchObject({ kind: "ambiguous" });
    expect(server.heads).toHaveLength(1);
  });
});

describe("what must not be sent is not sent", () => {
  const impossible = () => Promise.reject(new Error("the store is down"));
  it.each([
    ["document-unreadable", "SEND", send, { document: impossible }],
    ["document-mismatch", "SEND", send, { document: () => Promise.resolve(Buffer.from("other")) }],
    ["bad-provider-key", "SEND", send, { providerKey: "a\r\nx: y" }],
    ["no-target-reference", "VOID", withdraw, {}],
    ["no-target-reference", "VOID", withdraw, { targetRef: ".." }],
    ["write-not-allowed", "SEND", send, { mayWrite: () => false }],
    ["UND_ERR_INVALID_ARG", "SEND", send, { credential: "a\r\nx: y" }],
  ] as const)("%s (%s)", async (cause, action, request, more) => {
    const server = await rawServer((socket) => socket.end());
    const observation = await wesign.submit(action, request, callContext(server.baseUrl, more).call);
    expect(observation).toEqual({ kind: "not-sent", cause });
    expect(server.heads).toEqual([]);
  });

  it("a target reference is one path segment, whatever is in it", async () => {
    const { arrivals, baseUrl } = await provider(200, '{"id":"../a?b/$&","status":"withdrawn"}');
    const { call } = callContext(baseUrl, { targetRef: "../a?b/$&" });
    expect(await wesign.submit("VOID", withdraw, call)).toMatchObject({ kind: "accepted", recordStatus: "withdrawn" });
    expect(arrivals[0]?.line).toBe("POST /v1/signing-requests/..%2Fa%3Fb%2F%24%26/withdraw");
  });
});

it.each([
  [202, '{"id":"sr_1"}'],
  [201, '{"id":"sr_1","status":"rendering"}'],
])(
  "an answer that doesn't say what became of it (%i %s) is reported as evidence, not as a draft",
  async (status, body) => {
    const { arrivals, baseUrl } = await provider(status, body);
    const { call, reported } = callContext(baseUrl);
    expect(await wesign.submit("SEND", send, call)).toMatchObject({ kind: "queued", ref: "sr_1" });
    expect(reported).toEqual([["sr_1", "evidence"]]);
    expect(arrivals).toHaveLength(1);
  },
);

describe("a staged answer", () => {
  const staged = '{"id":"sr_1","document_id":"doc_1","status":"staged"}';

  it("keeps its reference when reporting it fails", async () => {
    const { baseUrl } = await provider(201, staged);
    const { call } = callContext(baseUrl, { reportReference: () => Promise.reject(new Error("no database")) });
    const request = prepared(wesign.prepare("SEND", payloadOf(staging), ids));
    expect(await wesign.submit("SEND", request, call)).toMatchObject({ kind: "queued", ref: "sr_1" });
  });

  it("that was asked for is accepted as staged", async () => {
    const { baseUrl } = await provider(201, staged);
    const { call, reported } = callContext(baseUrl);
    const request = prepared(wesign.prepare("SEND", payloadOf({ ...staging, stageOnly: true }), ids));
    expect(await wesign.submit("SEND", request, call)).toMatchObject({ kind: "accepted", recordStatus: "staged" });
    expect(reported).toEqual([]);
  });
});

it("no observation carries credential, key, host or document name", async () => {
  const { call } = callContext("http://secret-host.invalid", { credential: "wsk_marker", providerKey: "key-marker" });
  const observation = await wesign.submit("SEND", send, call);
  expect(observation.kind).toBe("not-sent");
  expect(JSON.stringify(observation)).not.toMatch(/marker|secret-host|document\.pdf/);
});
