import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";

/** A server on loopback that counts what arrives. */
export interface TestServer {
  baseUrl: string;
  close(): Promise<void>;
}

const openServers = new Set<TestServer>();

/** Ends every server that a test has started. Call it in `afterEach`. */
export async function closeServers(): Promise<void> {
  await Promise.all([...openServers].map((server) => server.close()));
}

/** HTTP over a real socket. */
export async function httpServer(listener: RequestListener): Promise<TestServer & { server: Server }> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  return { server, ...(await listening(server, sockets)) };
}

/** Raw TCP, for answers that no HTTP library would give. `onRequest` is called with every head that arrives whole. */
export async function rawServer(
  onRequest: (socket: Socket, head: string, count: number) => void,
): Promise<TestServer & { heads: string[] }> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = text.slice(0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      text = text.slice(end + 4 + length);
      heads.push(head);
      onRequest(socket, head, heads.length);
    });
  });
  return { heads, ...(await listening(server, sockets)) };
}

async function listening(server: Server | TcpServer, sockets: Set<Socket>): Promise<TestServer> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const handle: TestServer = {
    baseUrl: `http://127.0.0.1:${portOf(address)}`,
    close: () => {
      openServers.delete(handle);
      for (const socket of sockets) socket.destroy();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  openServers.add(handle);
  return handle;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

/** The whole body of a request. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
