import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Direction } from "@countersign/devstack";
import { type Frame, type Framer, framer, type Protocol } from "./wire-frames.js";

/** One step of a conversation. */
export interface Step {
  /** From 1, counted since the proxy was armed. */
  readonly number: number;
  readonly direction: Direction;
  /** For a reader. */
  readonly name: string;
}

/** Where to stop. */
export interface Stop {
  /** The first frame that counts; its connection is followed from there on, and no other. */
  from(frame: Buffer, direction: Direction): boolean;
  /** A frame of the connection followed that is beyond what counts: nothing stops from there on. */
  beyond?(frame: Buffer, direction: Direction): boolean;
  /** Nothing of this step is forwarded, and nothing at all after it, on any connection. Infinity: only count. */
  at: number;
  /** `turn`: what one side says before the other answers is one step. `frame`: each frame is. */
  grain: "turn" | "frame";
}

interface Link {
  readonly client: Socket;
  readonly target: Socket;
}

interface Armed extends Stop {
  followed: Link | undefined;
  passedBy: boolean;
  readonly steps: Step[];
  readonly resolve: (step: Step | undefined) => void;
}

/**
 * Stands between a process and its server and stops their conversation at the k-th step: what was forwarded has
 * happened, the rest never will. Killing the process there is a crash at exactly that step, with no hook in the process.
 */
export class StepProxy {
  readonly port: number;
  readonly #server: Server;
  #targetPort: number;
  readonly #protocol: Protocol;
  readonly #links = new Set<Link>();
  #armed: Armed | undefined;
  #frozen = false;

  private constructor(server: Server, port: number, targetPort: number, protocol: Protocol) {
    this.#server = server;
    this.port = port;
    this.#targetPort = targetPort;
    this.#protocol = protocol;
    server.on("connection", (client) => this.#accept(client));
  }

  /** @param target.port where it forwards to; see `aim` */
  static async start(target: { readonly port: number; readonly protocol: Protocol }): Promise<StepProxy> {
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new TypeError("a TCP server has an address object");
    return new StepProxy(server, address.port, target.port, target.protocol);
  }

  /** Forwards new connections to another port. */
  aim(port: number): void {
    this.#targetPort = port;
  }

  /** The same address with this proxy in place of the target. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = "127.0.0.1";
    changed.port = String(this.port);
    return changed.href;
  }

  /** Counts from now on; resolves with the step at which everything stopped, or undefined when it went beyond. */
  arm(stop: Stop): Promise<Step | undefined> {
    this.#frozen = false;
    return new Promise((resolve) => {
      this.#armed = { ...stop, followed: undefined, passedBy: false, steps: [], resolve };
    });
  }

  /** Steps since it was armed, that at which it stopped included. */
  get steps(): readonly Step[] {
    return this.#armed?.steps ?? [];
  }

  /** Ends every connection, what is held back with it, and lets new ones pass. */
  disarm(): void {
    this.#armed = undefined;
    this.#frozen = false;
    for (const { client, target } of this.#links) {
      client.destroy();
      target.destroy();
    }
    this.#links.clear();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.disarm();
    await closed;
  }

  #accept(client: Socket): void {
    const target = connect({ host: "127.0.0.1", port: this.#targetPort, noDelay: true });
    const link: Link = { client, target };
    this.#links.add(link);
    for (const [from, to, direction] of [
      [client, target, "toTarget"],
      [target, client, "toClient"],
    ] as const) {
      const frames: Framer = framer(this.#protocol, direction);
      from.on("data", (chunk: Buffer) => {
        for (const frame of frames(chunk)) {
          if (this.#passes(link, direction, frame)) to.write(frame.bytes);
        }
      });
      // "close" follows, and either side's end is the end of both.
      from.on("error", () => undefined);
      from.on("close", () => {
        this.#links.delete(link);
        to.destroySoon();
      });
    }
  }

  #passes(link: Link, direction: Direction, frame: Frame): boolean {
    const armed = this.#armed;
    if (this.#frozen) return false;
    if (armed === undefined) return true;
    if (armed.followed === undefined && armed.from(frame.bytes, direction)) armed.followed = link;
    if (armed.followed !== link || armed.passedBy) return true;
    if (armed.beyond?.(frame.bytes, direction) === true) {
      armed.passedBy = true;
      armed.resolve(undefined);
      return true;
    }
    const last = armed.steps.at(-1);
    if (last !== undefined && armed.grain === "turn" && last.direction === direction) return true;
    const step: Step = { number: armed.steps.length + 1, direction, name: frame.name };
    armed.steps.push(step);
    if (step.number < armed.at) return true;
    this.#frozen = true;
    armed.resolve(step);
    return false;
  }
}
