import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { isProcessAlive } from "./process-alive.js";

// A process of its own, from what is built: the parent that dies must not be the test.
const BUILT = new URL("../dist/index.js", import.meta.url).href;
const parents: ChildProcess[] = [];

afterEach(() => {
  for (const parent of parents.splice(0)) parent.kill("SIGKILL");
});

/** Runs a script whose first line of output is JSON; resolves with that line, the script going on. */
async function runParent(script: string): Promise<{ parent: ChildProcess; facts: Record<string, unknown> }> {
  const source = `import * as stack from ${JSON.stringify(BUILT)};\n${script}`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, REDIS_URL: "" },
  });
  parents.push(parent);
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  return { parent, facts: JSON.parse(String(line)) };
}

/** Waits for what happens in another process, of which no event tells us. */
async function eventually(holds: () => boolean, timeoutMs = 15_000): Promise<boolean> {
  const start = performance.now();
  while (!holds()) {
    if (performance.now() - start > timeoutMs) return false;
    await delay(20);
  }
  return true;
}

const START_BOTH = `
  const [postgres, redis] = await Promise.all([stack.startPostgres({ durable: false }), stack.startRedis()]);
  const say = () => console.log(JSON.stringify({ pids: [postgres.pid, redis.pid], folder: postgres.dataDir }));
`;

function stackOf(facts: Record<string, unknown>): { pids: number[]; folder: string } {
  const pids = Array.isArray(facts.pids) ? facts.pids.map(Number) : [];
  return { pids, folder: dirname(String(facts.folder)) };
}

describe("what was started ends with the process that started it", () => {
  it.each(["SIGKILL", "SIGINT"] as const)("by %s: no server and no temporary folder is left", async (signal) => {
    const { parent, facts } = await runParent(`${START_BOTH} say(); setInterval(() => {}, 1000);`);
    const { pids, folder } = stackOf(facts);
    expect(pids.map(isProcessAlive)).toEqual([true, true]);
    expect(existsSync(folder)).toBe(true);
    parent.kill(signal);
    expect(await eventually(() => !existsSync(folder) && !pids.some(isProcessAlive))).toBe(true);
  });

  it("by its ordinary end without stop, which the servers don't keep it from", async () => {
    const { parent, facts } = await runParent(`${START_BOTH} say();`);
    const { pids, folder } = stackOf(facts);
    if (parent.exitCode === null) await once(parent, "exit");
    expect(parent.exitCode).toBe(0);
    expect(await eventually(() => !existsSync(folder) && !pids.some(isProcessAlive))).toBe(true);
  });

  it("also processes of its own that were registered, the deaf and the stopped, before the services", async () => {
    const { parent, facts } = await runParent(`
      import { spawn } from "node:child_process";
      import { once } from "node:events";
      const deaf = stack.superviseChild(
        spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)"]),
        { graceMs: 100 },
      );
      await once(deaf.stdout, "data");
      const stopped = spawn("sleep", ["600"]);
      stack.watchPid(stopped.pid);
      stopped.kill("SIGSTOP");
      console.log(JSON.stringify({ pids: [deaf.pid, stopped.pid] }));
    `);
    const { pids } = stackOf(facts);
    expect(pids.map(isProcessAlive)).toEqual([true, true]);
    parent.kill("SIGKILL");
    expect(await eventually(() => !pids.some(isProcessAlive))).toBe(true);
  });

  it("but not a process or folder that was taken back", async () => {
    const folder = mkdtempSync(join(tmpdir(), "devstack-watch-"));
    const kept = spawn("sleep", ["600"]);
    const ended = spawn("sleep", ["600"]);
    try {
      const { parent } = await runParent(`
        stack.watchPid(${kept.pid});
        stack.watchPid(${ended.pid});
        stack.watchFolder(${JSON.stringify(folder)});
        stack.unwatchPid(${kept.pid});
        stack.forgetFolder(${JSON.stringify(folder)});
        console.log("{}");
        setInterval(() => {}, 1000);
      `);
      const gone = once(ended, "exit");
      parent.kill("SIGKILL");
      await gone; // proof that the watchdog has come this far
      expect(kept.exitCode ?? kept.signalCode).toBeNull();
      expect(existsSync(folder)).toBe(true);
    } finally {
      kept.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
