import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { superviseChild } from "@countersign/devstack";

/** How to start a Node process of ours. */
export interface ChildOptions {
  readonly script: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What it prints is appended here: a file, so that nobody has to read along for it to go on. */
  readonly logFile: string;
}

const tailBytes = 4_000;

/** A child process that ends with this one, however this one ends. */
export class Child {
  readonly process: ChildProcess;
  readonly logFile: string;
  readonly #ended: Promise<string>;

  constructor(options: ChildOptions) {
    const log = openSync(options.logFile, "a", 0o600);
    try {
      // A group of its own: Ctrl-C is for this process, which then stops its children in order.
      const child = spawn(process.execPath, [options.script, ...(options.args ?? [])], {
        detached: true,
        stdio: ["ignore", log, log, "ipc"],
        env: { ...options.env },
      });
      this.process = superviseChild(child, { graceMs: 3_000 });
    } finally {
      closeSync(log);
    }
    this.logFile = options.logFile;
    this.#ended = new Promise((resolve) => {
      this.process.once("error", (error) => resolve(error.message));
      this.process.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  get running(): boolean {
    return this.process.pid !== undefined && this.process.exitCode === null && this.process.signalCode === null;
  }

  /** Resolves when it has ended, with its exit code or signal in words. */
  ended(): Promise<string> {
    return this.#ended;
  }

  /** Asks it to stop and waits; after `graceMs` it is killed. */
  async stop(graceMs: number): Promise<void> {
    if (!this.running) return;
    this.process.kill("SIGTERM");
    const limit = setTimeout(() => this.process.kill("SIGKILL"), graceMs);
    await this.#ended;
    clearTimeout(limit);
  }

  /** The first message it sends over its IPC channel; undefined when it ends before. */
  firstMessage(): Promise<unknown> {
    return Promise.race([
      new Promise((resolve) => this.process.once("message", resolve)),
      this.#ended.then(() => undefined),
    ]);
  }

  /** The last lines it printed. */
  logTail(): string {
    const text = readFileSync(this.logFile, "utf8");
    return text.slice(-tailBytes).trim();
  }
}
