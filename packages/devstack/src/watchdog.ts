import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** How a watched process is ended once this process is gone. */
export interface WatchOptions {
  /** The first signal. Default SIGTERM. */
  readonly signal?: NodeJS.Signals;
  /** Milliseconds between the first signal and SIGKILL. Default 5000. */
  readonly graceMs?: number;
  /** Services (databases) are ended after the processes that use them. Default "process". */
  readonly stage?: "process" | "service";
}

type Message =
  | { op: "watch"; pid: number; signal: NodeJS.Signals; graceMs: number; stage: "process" | "service" }
  | { op: "unwatch"; pid: number }
  | { op: "folder"; path: string }
  | { op: "forget"; path: string };

const watched = new Map<number, Message>();
const folders = new Map<string, Message>();
let pipe: Writable | undefined;

/** A watchdog that died is replaced and told everything again, unless it died at once (then at the next use). */
const RESPAWN_AFTER_MS = 1000;

function startWatchdog(): Writable {
  const startedAt = performance.now();
  // Detached: Ctrl-C reaches a whole process group, and the watchdog must outlive it. stderr is inherited so that
  // what it could not clean up is said somewhere.
  const child = spawn(process.execPath, [fileURLToPath(new URL("../watchdog.mjs", import.meta.url))], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
    env: {},
    cwd: "/",
  });
  const { stdin } = child;
  child.unref();
  if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  const lost = (): void => {
    if (pipe !== stdin) return;
    pipe = undefined;
    const something = watched.size + folders.size > 0;
    if (something && performance.now() - startedAt > RESPAWN_AFTER_MS) startWatchdog();
  };
  child.on("error", lost).on("exit", lost);
  stdin.on("error", lost);
  pipe = stdin;
  for (const message of [...watched.values(), ...folders.values()]) stdin.write(`${JSON.stringify(message)}\n`);
  return stdin;
}

function tell(message: Message): void {
  (pipe ?? startWatchdog()).write(`${JSON.stringify(message)}\n`);
}

/**
 * Ends process `pid` when this process ends, however it ends: signal, then SIGKILL. Pair it with `unwatchPid` once
 * the process is known to be gone, although a reused number is never signalled (the start time is compared on Linux).
 */
export function watchPid(pid: number, options: WatchOptions = {}): void {
  const { signal = "SIGTERM", graceMs = 5000, stage = "process" } = options;
  const message: Message = { op: "watch", pid, signal, graceMs, stage };
  tell(message);
  watched.set(pid, message);
}

/** Takes back `watchPid`. */
export function unwatchPid(pid: number): void {
  watched.delete(pid);
  tell({ op: "unwatch", pid });
}

/** Removes a folder and all that is in it when this process ends, after the watched processes have ended. */
export function watchFolder(path: string): void {
  const message: Message = { op: "folder", path };
  tell(message);
  folders.set(path, message);
}

/** Takes back `watchFolder`: the folder stays. */
export function forgetFolder(path: string): void {
  folders.delete(path);
  tell({ op: "forget", path });
}

/** Watches a child until it exits: `watchPid` and `unwatchPid` in one. Returns the child; one that failed to spawn is left alone. */
export function superviseChild<Child extends ChildProcess>(child: Child, options: WatchOptions = {}): Child {
  const { pid } = child;
  if (pid === undefined) return child;
  watchPid(pid, options);
  child.once("exit", () => unwatchPid(pid));
  return child;
}
