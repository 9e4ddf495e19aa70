import { once } from "node:events";
import { getGlobalDispatcher, MockAgent, setGlobalDispatcher } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { type HttpCall, HttpTransport } from "./http-call.js";
import { bodyOf, closeServers, httpServer, rawServer } from "./testing/servers.js";

const transports: HttpTransport[] = [];
const transport = (...args: ConstructorParameters<typeof HttpTransport>) => {
  const created = new HttpTransport(...args);
  transports.push(created);
  return created;
};
const callTo = (baseUrl: string, rest: Partial<HttpCall> = {}): HttpCall => ({
  method: "POST",
  baseUrl,
  path: "/v1/things",
  headers: {},
  deadlineMs: 5_000,
  mayWrite: () => true,
  ...rest,
});

afterEach(async () => {
  await closeServers();
  await Promise.all(transports.splice(0).map((each) => each.close()));
});

describe("a whole answer", () => {
  it("comes back with status, lower-case headers and raw body", async () => {
    const server = await httpServer((request, response) => {
      response.writeHead(201, { "X-Thing": "yes" }).end(`${request.method} ${request.url}`);
    });
    const outcome = await transport().send(callTo(`${server.baseUrl}/prefix/`, { body: Buffer.from("{}") }));
    expect(outcome).toMatchObject({ kind: "response", status: 201, headers: { "x-thing": "yes" } });
    expect(outcome.kind === "response" && Buffer.from(outcome.body).toString()).toBe("POST /prefix/v1/things");
  });

  it("is sent for a body of several slices, byte for byte and with its length", async () => {
    const body = Buffer.alloc(300_001, "abcdefg");
    let arrived: Buffer | undefined;
    let length: string | undefined;
    const server = await httpServer(async (request, response) => {
      length = request.headers["content-length"];
      arrived = await bodyOf(request);
      response.end("{}");
    });
    expect(await transport().send(callTo(server.baseUrl, { body }))).toMatchObject({ kind: "response", status: 200 });
    expect(length).toBe("300001");
    expect(arrived?.equals(body)).toBe(true);
  });

  it("over the cap ends as too-large, and the rest is not read", async () => {
    const server = await httpServer((_, response) => response.end(Buffer.alloc(5_000)));
    const outcome = await transport().send(callTo(server.baseUrl, { maxResponseBytes: 4_999 }));
    expect(outcome).toEqual({ kind: "too-large", status: 200 });
  });

  it("that redirects is not followed", async () => {
    let arrivals = 0;
    const server = await httpServer((_, response) => {
      arrivals += 1;
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    expect(await transport().send(callTo(server.baseUrl))).toMatchObject({ kind: "response", status: 307 });
    expect(arrivals).toBe(1);
  });
});

describe("nothing is written", () => {
  it.each([
    ["refused", "http://127.0.0.1:1", "ECONNREFUSED"],
    ["an unknown host", "http://no-such-host.invalid", /^(ENOTFOUND|EAI_AGAIN)$/],
    ["credentials in the base URL", "http://user:secret@127.0.0.1:1", "bad-base-url"],
    ["another scheme", "ftp://127.0.0.1", "bad-base-url"],
    ["no URL", "provider", "bad-base-url"],
  ])("when the connection is impossible: %s", async (_, baseUrl, cause) => {
    const outcome = await transport().send(callTo(baseUrl));
    expect(outcome).toEqual({ kind: "nothing-written", cause: expect.stringMatching(cause) });
  });

  it("when the server speaks no TLS", async () => {
    const server = await rawServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const outcome = await transport().send(callTo(server.baseUrl.replace("http:", "https:"), { deadlineMs: 400 }));
    expect(outcome.kind).toBe("nothing-written");
    expect(server.heads).toEqual([]);
  });

  it("when the guard says no before the head, also for a large body", async () => {
    const server = await rawServer((socket) => socket.end());
    for (const body of [Buffer.from("{}"), Buffer.alloc(200_000)]) {
      const outcome = await transport().send(callTo(server.baseUrl, { body, mayWrite: () => false }));
      expect(outcome).toEqual({ kind: "nothing-written", cause: "write-not-allowed" });
    }
    expect(server.heads).toEqual([]);
  });

  it("when the guard says no between head and first slice, which leave together", async () => {
    let bytes = 0;
    const server = await httpServer(() => undefined);
    server.server.on("connection", (socket) => socket.on("data", (chunk) => (bytes += chunk.length)));
    let asked = 0;
    const outcome = await transport().send(
      callTo(server.baseUrl, { body: Buffer.alloc(200_000), mayWrite: () => ++asked === 1 }),
    );
    expect(outcome).toEqual({ kind: "nothing-written", cause: "write-not-allowed" });
    expect([asked, bytes]).toEqual([2, 0]);
  });

  it("when the guard throws", async () => {
    const server = await rawServer((socket) => socket.end());
    const mayWrite = () => {
      throw new Error("lease unknown");
    };
    const outcome = await transport().send(callTo(server.baseUrl, { mayWrite }));
    expect(outcome).toEqual({ kind: "nothing-written", cause: "write-guard-failed" });
  });

  it("when it was aborted before it began, or its deadline passed while it waited for a socket", async () => {
    const server = await rawServer(() => undefined);
    const one = transport({ connections: 1 });
    const signal = AbortSignal.abort();
    expect(await one.send(callTo(server.baseUrl, { signal }))).toEqual({ kind: "nothing-written", cause: "aborted" });

    const first = one.send(callTo(server.baseUrl, { deadlineMs: 500 }));
    const second = await one.send(callTo(server.baseUrl, { deadlineMs: 100 }));
    expect(second).toEqual({ kind: "nothing-written", cause: "deadline" });
    expect(await first).toMatchObject({ kind: "after-write", cause: "deadline" });
    // The socket is free again: the one that gave up while it waited must not be sent now.
    await one.send(callTo(server.baseUrl, { deadlineMs: 100 }));
    expect(server.heads).toHaveLength(2);
  });
});

describe("after the first byte", () => {
  it("the guard stops the body, and the call may have been applied", async () => {
    let received = 0;
    const server = await httpServer((request) =>
      request.on("data", (chunk) => (received += chunk.length)).on("error", () => undefined),
    );
    let asked = 0;
    const outcome = await transport().send(
      callTo(server.baseUrl, { body: Buffer.alloc(1_000_000), mayWrite: () => ++asked < 4 }),
    );
    expect(outcome).toMatchObject({ kind: "after-write", cause: "write-not-allowed" });
    expect(asked).toBe(4);
    expect(received).toBeLessThanOrEqual(2 * 64 * 1024);
  });

  it("an abort ends the call", async () => {
    const stop = new AbortController();
    const server = await rawServer(() => stop.abort());
    const outcome = await transport().send(callTo(server.baseUrl, { signal: stop.signal }));
    expect(outcome).toMatchObject({ kind: "after-write", cause: "aborted" });
  });

  it("one deadline covers an answer that drips a byte at a time", async () => {
    const server = await rawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n");
      const drip = setInterval(() => socket.write("x"), 20);
      socket.on("close", () => clearInterval(drip));
    });
    const outcome = await transport().send(callTo(server.baseUrl, { deadlineMs: 300 }));
    expect(outcome).toMatchObject({ kind: "after-write", cause: "deadline", status: 200 });
  });

  it("one deadline covers a server that never answers and one that never finishes TLS", async () => {
    const server = await rawServer(() => undefined);
    const silent = await transport().send(callTo(server.baseUrl, { deadlineMs: 200 }));
    expect(silent).toMatchObject({ kind: "after-write", cause: "deadline" });
    const noTls = await transport().send(callTo(server.baseUrl.replace("http:", "https:"), { deadlineMs: 200 }));
    expect(noTls).toEqual({ kind: "nothing-written", cause: "deadline" });
  });

  const cut = {
    "content-length 50, 9 bytes": 'HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{"id":"a"',
    "chunked, whole JSON, no last chunk":
      'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\n',
    "chunked, whole JSON, no last chunk, connection: close":
      'HTTP/1.1 201 Created\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\n',
    "content-length 50, connection: close":
      'HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 50\r\n\r\n{"id":"a"}',
  };
  it.each(Object.entries(cut))("a body that ends early is no answer, its status is noted: %s", async (_, bytes) => {
    const server = await rawServer((socket) => socket.end(bytes));
    const outcome = await transport().send(callTo(server.baseUrl));
    expect(outcome).toMatchObject({ kind: "after-write", status: 201 });
    expect(server.heads).toHaveLength(1);
  });
});

describe("one arrival, never two", () => {
  it.each(["GET", "POST", "PUT", "DELETE"])(
    "%s applied and then reset, on a fresh and on a reused socket",
    async (method) => {
      const answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
      const server = await rawServer((socket, head) => {
        if (head.includes("/warm")) socket.write(answer);
        else socket.resetAndDestroy();
      });
      const one = transport({ connections: 1 });
      const body = method === "GET" ? {} : { body: Buffer.from("{}") };
      const fresh = await one.send(callTo(server.baseUrl, { method, ...body }));
      expect(fresh).toMatchObject({ kind: "after-write" });
      await one.send(callTo(server.baseUrl, { method, path: "/warm", ...body }));
      const reused = await one.send(callTo(server.baseUrl, { method, ...body }));
      expect(reused).toMatchObject({ kind: "after-write" });
      expect(server.heads).toHaveLength(3);
    },
  );

  it.each(["PUT", "DELETE", "POST"])("%s answered 502, 503 or 429 with Retry-After", async (method) => {
    for (const status of [502, 503, 429]) {
      let arrivals = 0;
      const server = await httpServer((_, response) => {
        arrivals += 1;
        response.writeHead(status, { "retry-after": "0" }).end();
      });
      expect(await transport().send(callTo(server.baseUrl, { method }))).toMatchObject({ kind: "response", status });
      expect(arrivals).toBe(1);
    }
  });

  it("a socket that the server has closed while it was idle is replaced, not written to", async () => {
    let closed: Promise<unknown> | undefined;
    const server = await rawServer((socket) => {
      closed = once(socket, "close");
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    });
    const one = transport({ connections: 1 });
    expect(await one.send(callTo(server.baseUrl))).toMatchObject({ kind: "response" });
    await closed;
    const second = await one.send(callTo(server.baseUrl));
    // Either it saw the end in time and used a new socket, or it is ambiguous; never a second arrival of one call.
    expect(["response", "after-write"]).toContain(second.kind);
    expect(server.heads.length).toBeLessThanOrEqual(2);
  });

  it("an idle socket is closed by us within the keep-alive time", async () => {
    const server = await httpServer((_, response) => response.end("{}"));
    const connected = once(server.server, "connection");
    await transport({ keepAliveMs: 1_000 }).send(callTo(server.baseUrl));
    const [socket] = await connected;
    await once(socket, "end");
    expect(socket.readableEnded).toBe(true);
  });

  it("whatever global dispatcher the process has set", async () => {
    const before = getGlobalDispatcher();
    const mock = new MockAgent();
    mock.disableNetConnect();
    setGlobalDispatcher(mock);
    try {
      const server = await httpServer((_, response) => response.end("{}"));
      expect(await transport().send(callTo(server.baseUrl))).toMatchObject({ kind: "response", status: 200 });
    } finally {
      setGlobalDispatcher(before);
      await mock.close();
    }
  });
});
