import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** From the client to the target, or back. */
export type Direction = "toTarget" | "toClient";

/**
 * What the proxy does with bytes and connections:
 * - `pass`: forwards everything, half-closes included.
 * - `refuse`: does not listen: new connections are refused by the operating system. Open ones go on (see `closeAll`).
 * - `swallow-answers`: forwards requests, drops every answer: the lost response.
 * - `black-hole`: accepts, reads and forwards nothing.
 * - `cut`: forwards `afterBytes` bytes in that direction (a connection's count starts when it opens or the mode is set,
 *   whichever is later), then ends the connection on both sides: `reset` (the default) or `end` (an orderly end: a
 *   truncated message). A reset right behind data may cost the receiver that data, and Node reports the two together
 *   as an orderly end: for a sure ECONNRESET cut after 0 bytes, for a sure partial message use `end`.
 */
export type ProxyMode =
  | { readonly kind: "pass" }
  | { readonly kind: "refuse" }
  | { readonly kind: "swallow-answers" }
  | { readonly kind: "black-hole" }
  | {
      readonly kind: "cut";
      readonly direction: Direction;
      readonly afterBytes: number;
      readonly how?: "reset" | "end";
    };

/** What the proxy has done since it started. */
export interface ProxyCounters {
  /** Connections accepted. */
  readonly accepted: number;
  /** Connections open now on the client's side. */
  readonly open: number;
  /** Connections ended by `cut` or `closeAll`. */
  readonly cut: number;
  /** Bytes forwarded. */
  readonly forwarded: Readonly<Record<Direction, number>>;
  /** Bytes dropped. */
  readonly dropped: Readonly<Record<Direction, number>>;
}

/** Where the proxy listens (127.0.0.1; a free port unless given) and where it forwards to. */
export interface ProxyOptions {
  readonly listen?: number;
  readonly target: { readonly host?: string; readonly port: number };
}

interface Link {
  readonly client: Socket;
  /** Undefined where the connection was accepted into a black hole. */
  readonly target: Socket | undefined;
  readonly sinceMode: Record<Direction, number>;
  /** A direction that has lost bytes stays deaf: TCP never delivers a stream with a gap. */
  readonly deaf: Record<Direction, boolean>;
}

interface Waiter {
  readonly wanted: (counters: ProxyCounters) => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A TCP proxy whose faults are switched while it runs; one mode for all its connections, new and open. */
export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #links = new Set<Link>();
  readonly #waiters = new Set<Waiter>();
  readonly #forwarded: Record<Direction, number> = { toTarget: 0, toClient: 0 };
  readonly #dropped: Record<Direction, number> = { toTarget: 0, toClient: 0 };
  #accepted = 0;
  #cut = 0;
  #mode: ProxyMode = { kind: "pass" };

  private constructor(server: Server, port: number, target: ProxyOptions["target"]) {
    this.#server = server;
    this.port = port;
    this.#target = { host: target.host ?? "127.0.0.1", port: target.port };
    server.on("connection", (client) => this.#accept(client));
  }

  /** Listens, in mode `pass`. Rejects when the chosen port is taken. */
  static async start({ listen = 0, target }: ProxyOptions): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.listen(listen, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new TypeError("a TCP server has an address object");
    return new TcpProxy(server, address.port, target);
  }

  get mode(): ProxyMode {
    return this.#mode;
  }

  get counters(): ProxyCounters {
    return {
      accepted: this.#accepted,
      open: this.#links.size,
      cut: this.#cut,
      forwarded: { ...this.#forwarded },
      dropped: { ...this.#dropped },
    };
  }

  /** The same address with this proxy in place of the target: for HTTP, PostgreSQL and Redis URLs. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = "127.0.0.1";
    changed.port = String(this.port);
    return changed.href;
  }

  /** Switches; when it resolves, the mode holds for every further byte and connection. */
  async setMode(mode: ProxyMode): Promise<void> {
    this.#mode = mode;
    for (const { sinceMode } of this.#links) {
      sinceMode.toTarget = 0;
      sinceMode.toClient = 0;
    }
    if (mode.kind === "refuse") this.#server.close();
    else if (!this.#server.listening) {
      this.#server.listen(this.port, "127.0.0.1");
      await once(this.#server, "listening");
    }
  }

  /** Resets every open connection, on both sides. */
  closeAll(): void {
    for (const link of [...this.#links]) this.#cutLink(link, "reset");
  }

  /** Resolves as soon as the counters are as wanted, which orders a test without sleeping. Rejects when the proxy stops first. */
  waitUntil(wanted: (counters: ProxyCounters) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.add({ wanted, resolve, reject });
      this.#changed();
    });
  }

  /** Stops listening and resets what is open. May be called twice. */
  async stop(): Promise<void> {
    this.#mode = { kind: "refuse" };
    const closed = this.#server.listening ? once(this.#server, "close") : undefined;
    this.#server.close();
    this.closeAll();
    await closed;
    for (const waiter of this.#waiters) waiter.reject(new Error("the proxy was stopped"));
    this.#waiters.clear();
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    const blackHole = this.#mode.kind === "black-hole";
    const target = blackHole ? undefined : connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const link: Link = {
      client,
      target,
      sinceMode: { toTarget: 0, toClient: 0 },
      deaf: { toTarget: blackHole, toClient: blackHole },
    };
    this.#links.add(link);
    this.#relay(link, "toTarget", client, target);
    if (target !== undefined) this.#relay(link, "toClient", target, client);
    client.on("close", () => {
      this.#links.delete(link);
      target?.destroy();
      this.#changed();
    });
    this.#changed();
  }

  #relay(link: Link, direction: Direction, from: Socket, to: Socket | undefined): void {
    from.on("data", (chunk: Buffer) => this.#forward(link, direction, chunk, from, to));
    from.on("end", () => {
      if (!this.#isDeaf(link, direction)) to?.end();
    });
    // A reset is passed on as a reset; where answers are swallowed, so is their end.
    from.on("error", () => {
      if (!this.#isDeaf(link, direction)) to?.resetAndDestroy();
    });
  }

  #isDeaf(link: Link, direction: Direction): boolean {
    const { kind } = this.#mode;
    if (kind === "black-hole" || (kind === "swallow-answers" && direction === "toClient")) link.deaf[direction] = true;
    return link.deaf[direction];
  }

  #forward(link: Link, direction: Direction, chunk: Buffer, from: Socket, to: Socket | undefined): void {
    if (to === undefined || this.#isDeaf(link, direction)) {
      this.#dropped[direction] += chunk.length;
      this.#changed();
      return;
    }
    const mode = this.#mode;
    const left =
      mode.kind === "cut" && mode.direction === direction ? mode.afterBytes - link.sinceMode[direction] : Infinity;
    const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
    link.sinceMode[direction] += part.length;
    this.#forwarded[direction] += part.length;
    this.#dropped[direction] += chunk.length - part.length;
    if (mode.kind === "cut" && part.length >= left) {
      link.deaf[direction] = true; // what arrives while the last part is written comes too late
      to.write(part, () => this.#cutLink(link, mode.how ?? "reset"));
    } else if (!to.write(part)) {
      from.pause();
      to.once("drain", () => from.resume());
    }
    this.#changed();
  }

  #cutLink({ client, target }: Link, how: "reset" | "end"): void {
    if (client.destroyed) return;
    this.#cut += 1;
    for (const socket of [client, target]) {
      if (how === "reset") socket?.resetAndDestroy();
      else socket?.destroySoon();
    }
  }

  #changed(): void {
    const { counters } = this;
    for (const waiter of [...this.#waiters]) {
      if (!waiter.wanted(counters)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
