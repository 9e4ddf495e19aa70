import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isProcessAlive } from "@countersign/devstack";

/** One of this package's commands, run as built, as its own process; for tests. */
export class Command {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";

  constructor(entry: "demo-main.js" | "start-main.js", args: readonly string[], env: Record<string, string> = {}) {
    const script = fileURLToPath(new URL(`../dist/${entry}`, import.meta.url));
    this.child = spawn(process.execPath, [script, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, ...env },
    });
    this.child.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Its exit code or signal, once all it printed was read. */
  ended(): Promise<number | NodeJS.Signals | null> {
    return new Promise((resolve) => this.child.once("close", (code, signal) => resolve(code ?? signal)));
  }

  /** Waits until it has printed this. */
  async printed(text: string): Promise<void> {
    await waitUntil(() => {
      if (this.child.exitCode !== null)
        throw new Error(`it ended before it printed "${text}":\n${this.stdout}${this.stderr}`);
      return `${this.stdout}${this.stderr}`.includes(text);
    });
  }
}

/** Polls until something is so. */
export async function waitUntil(isSo: () => boolean, timeoutMs = 90_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!isSo()) {
    if (performance.now() > end) throw new Error("waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Processes below this one, as /proc tells; empty where there is no /proc. */
export function descendants(pid: number): number[] {
  if (process.platform !== "linux") return [];
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // it ended between the two looks
    }
  }
  const found = [pid];
  for (const known of found) {
    for (const [child, parent] of parents) if (parent === known) found.push(child);
  }
  return found.slice(1);
}

/** Those of them that still run. */
export const alive = (pids: readonly number[]): number[] => pids.filter(isProcessAlive);
