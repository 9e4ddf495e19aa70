import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TcpProxy } from "./tcp-proxy.js";

/** An upper-casing echo server that remembers what it was sent. */
let server: Server;
let received = "";
let proxy: TcpProxy;
const sockets = new Set<Socket>();

beforeEach(async () => {
  received = "";
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      received += text;
      socket.write(text.toUpperCase());
    });
    socket.on("end", () => socket.end("<end>"));
    socket.on("error", () => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  proxy = await TcpProxy.start({ target: { port: address.port } });
});

afterEach(async () => {
  await proxy.stop();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  server.close();
});

interface Dialled {
  readonly socket: Socket;
  /** Resolves when the connection is over, with all that was received and how it ended. */
  readonly over: Promise<{ text: string; ended: boolean; error: string | undefined }>;
  readonly text: () => string;
}

function dial(): Dialled {
  const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  sockets.add(socket);
  socket.setEncoding("utf8");
  let text = "";
  let ended = false;
  let error: string | undefined;
  socket.on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("end", () => {
    ended = true;
    socket.end();
  });
  socket.on("error", (cause: NodeJS.ErrnoException) => {
    error = cause.code;
  });
  const over = new Promise<{ text: string; ended: boolean; error: string | undefined }>((resolve) => {
    socket.on("close", () => resolve({ text, ended, error }));
  });
  return { socket, over, text: () => text };
}

it("pass: forwards both directions and half-closes, and counts", async () => {
  const { socket, over } = dial();
  socket.end("hello");
  expect(await over).toEqual({ text: "HELLO<end>", ended: true, error: undefined });
  await proxy.waitUntil(({ open }) => open === 0);
  expect(proxy.counters).toEqual({
    accepted: 1,
    open: 0,
    cut: 0,
    forwarded: { toTarget: 5, toClient: 10 },
    dropped: { toTarget: 0, toClient: 0 },
  });
});

it("pass: forwards more than the buffers hold, unharmed", async () => {
  const { socket, over } = dial();
  socket.end("a".repeat(3_000_000));
  expect((await over).text).toBe(`${"A".repeat(3_000_000)}<end>`);
});

it("pass: resets the client when nothing listens at the target", async () => {
  const nobody = await TcpProxy.start({ target: { port: 1 } });
  const socket = connect(nobody.port, "127.0.0.1");
  const [error] = await once(socket, "error");
  expect(error).toMatchObject({ code: "ECONNRESET" });
  await nobody.stop();
});

it("refuse: new connections are refused, open ones go on, and it listens again on the same port", async () => {
  const open = dial();
  open.socket.write("a");
  await once(open.socket, "data");
  await proxy.setMode({ kind: "refuse" });
  expect((await dial().over).error).toBe("ECONNREFUSED");
  open.socket.end("b");
  expect((await open.over).text).toBe("AB<end>");
  await proxy.setMode({ kind: "pass" });
  const again = dial();
  again.socket.end("c");
  expect((await again.over).text).toBe("C<end>");
});

it("swallow-answers: the request arrives, the answer never does, not even its end", async () => {
  await proxy.setMode({ kind: "swallow-answers" });
  const { socket, text } = dial();
  socket.end("hello");
  await proxy.waitUntil(({ dropped }) => dropped.toClient === "HELLO<end>".length);
  expect(received).toBe("hello");
  expect(text()).toBe("");
  expect(socket.readableEnded).toBe(false);
  expect(proxy.counters).toMatchObject({ open: 1, forwarded: { toTarget: 5, toClient: 0 } });
});

it("swallow-answers: a connection that has lost an answer stays deaf when answers pass again", async () => {
  await proxy.setMode({ kind: "swallow-answers" });
  const deaf = dial();
  deaf.socket.write("lost");
  await proxy.waitUntil(({ dropped }) => dropped.toClient === 4);
  await proxy.setMode({ kind: "pass" });
  deaf.socket.write("also");
  await proxy.waitUntil(({ dropped }) => dropped.toClient === 8);
  expect(deaf.text()).toBe("");
  const fresh = dial();
  fresh.socket.end("heard");
  expect((await fresh.over).text).toBe("HEARD<end>");
});

it("black-hole: accepts and lets nothing through, also on connections that were open", async () => {
  const open = dial();
  open.socket.write("a");
  await once(open.socket, "data");
  await proxy.setMode({ kind: "black-hole" });
  open.socket.write("bb");
  const fresh = dial();
  fresh.socket.write("ccc");
  await proxy.waitUntil(({ dropped }) => dropped.toTarget === 5);
  expect(received).toBe("a");
  expect(open.text() + fresh.text()).toBe("A");
});

it("cut toClient with an orderly end: exactly so many bytes of the answer arrive", async () => {
  await proxy.setMode({ kind: "cut", direction: "toClient", afterBytes: 3, how: "end" });
  const { socket, over } = dial();
  socket.write("hello");
  expect(await over).toEqual({ text: "HEL", ended: true, error: undefined });
  expect(received).toBe("hello");
  expect(proxy.counters).toMatchObject({ cut: 1, dropped: { toClient: 2 } });
});

it("cut toClient with a reset after no byte: the request arrived, the client sees a reset", async () => {
  await proxy.setMode({ kind: "cut", direction: "toClient", afterBytes: 0 });
  const { socket, over } = dial();
  socket.write("hello");
  expect(await over).toEqual({ text: "", ended: false, error: "ECONNRESET" });
  expect(received).toBe("hello");
});

it("cut toTarget: the target gets a part of the request, over several chunks, and the client a reset", async () => {
  await proxy.setMode({ kind: "cut", direction: "toTarget", afterBytes: 7, how: "end" });
  const { socket, over } = dial();
  socket.write("hello");
  await proxy.waitUntil(({ forwarded }) => forwarded.toTarget === 5);
  socket.write("world");
  await over;
  await proxy.waitUntil(({ open }) => open === 0);
  expect(proxy.counters).toMatchObject({ cut: 1, forwarded: { toTarget: 7 }, dropped: { toTarget: 3 } });
});

it("closeAll resets every open connection", async () => {
  const both = [dial(), dial()];
  const answered = both.map(({ socket }) => once(socket, "data"));
  for (const { socket } of both) socket.write("a");
  // Read before the reset comes: libuv reports data and a reset that arrive together as an orderly end.
  await Promise.all(answered);
  proxy.closeAll();
  for (const { over } of both) expect((await over).error).toBe("ECONNRESET");
  expect(proxy.counters).toMatchObject({ accepted: 2, cut: 2, open: 0 });
});

it("gives a URL with itself in place of the target, and ends waits when stopped", async () => {
  expect(proxy.through("postgres://user:secret@db.example:5432/app?x=1")).toBe(
    `postgres://user:secret@127.0.0.1:${proxy.port}/app?x=1`,
  );
  const waiting = expect(proxy.waitUntil(() => false)).rejects.toThrow("stopped");
  await proxy.stop();
  await proxy.stop();
  await waiting;
});
