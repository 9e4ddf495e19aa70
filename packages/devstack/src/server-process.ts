import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { ServerStartError } from "./errors.js";
import { superviseChild } from "./watchdog.js";

/** How a server of the stack is spawned. */
export interface ServerCommand {
  /** For messages: "PostgreSQL". */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** stdout and stderr are appended here: a file outlives us, where a pipe would break the server. */
  readonly logFile: string;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** The signal that the watchdog sends first. */
  readonly endSignal: NodeJS.Signals;
}

const LOG_TAIL_BYTES = 2000;
const READY_POLL_MS = 15;
const READY_TIMEOUT_MS = 60_000;
/** Signals after which a server goes on. */
const SURVIVED: ReadonlySet<NodeJS.Signals> = new Set(["SIGSTOP", "SIGCONT", "SIGHUP", "SIGUSR1", "SIGUSR2"]);

/** One running server process: supervised by the watchdog, out of reach of the terminal's Ctrl-C. */
export class ServerProcess {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #command: ServerCommand;
  readonly #logStart: number;
  readonly #exited: Promise<void>;

  private constructor(child: ChildProcess, pid: number, command: ServerCommand, logStart: number) {
    this.pid = pid;
    this.#child = child;
    this.#command = command;
    this.#logStart = logStart;
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => resolve());
    });
  }

  /** Spawns the server; throws `ServerStartError` when the operating system refuses. */
  static async spawn(command: ServerCommand): Promise<ServerProcess> {
    const log = openSync(command.logFile, "a", 0o600);
    const logStart = await fileSize(command.logFile);
    const child = spawn(command.command, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: ["ignore", log, log],
      ...(command.user === undefined ? {} : { uid: command.user.uid, gid: command.user.gid }),
    });
    closeSync(log);
    superviseChild(child, { signal: command.endSignal, stage: "service" });
    try {
      await once(child, "spawn");
    } catch (error) {
      throw new ServerStartError(command.name, error instanceof Error ? error.message : String(error), "");
    }
    if (child.pid === undefined) throw new ServerStartError(command.name, "it has no process id", "");
    const server = new ServerProcess(child, child.pid, command, logStart);
    // A forgotten stop() must not keep the caller's process alive; the watchdog does the rest.
    child.unref();
    return server;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Polls until `isReady`; throws `ServerStartError` with the end of the log when the process ends first or a minute has passed. */
  async waitUntilReady(isReady: () => Promise<boolean>): Promise<void> {
    const start = performance.now();
    while (!(await isReady())) {
      if (!this.running) throw new ServerStartError(this.#command.name, "it ended", await this.logTail());
      if (performance.now() - start > READY_TIMEOUT_MS) {
        await this.end("SIGKILL", 0);
        throw new ServerStartError(this.#command.name, `not ready after ${READY_TIMEOUT_MS} ms`, await this.logTail());
      }
      await delay(READY_POLL_MS);
    }
  }

  /** Sends a signal, and waits for the end where that signal brings one. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.running) return;
    this.#child.kill(signal);
    if (SURVIVED.has(signal)) return;
    await this.#waitForExit();
  }

  /** Ends the process: the given signal, then SIGKILL after `graceMs`. Does nothing when it has ended. */
  async end(signal: NodeJS.Signals, graceMs: number): Promise<void> {
    if (!this.running) return;
    this.#child.kill(signal);
    this.#child.kill("SIGCONT"); // in case it was stopped
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    await this.#waitForExit();
    clearTimeout(killer);
  }

  /** The last of what the server has written since it was spawned. */
  async logTail(): Promise<string> {
    const file = await open(this.#command.logFile, "r");
    try {
      const { size } = await file.stat();
      const from = Math.max(this.#logStart, size - LOG_TAIL_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, size - from)), 0, size - from, from);
      return buffer.toString("utf8", 0, bytesRead).trim();
    } finally {
      await file.close();
    }
  }

  async #waitForExit(): Promise<void> {
    this.#child.ref(); // so that node does not end while somebody waits
    await this.#exited;
  }
}

async function fileSize(path: string): Promise<number> {
  const file = await open(path, "r");
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}
