import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";

// Signals, exits and parents are real here: each case is a process of its own, running the built package.
const built = new URL("../dist/index.js", import.meta.url).href;
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

interface Run {
  readonly child: ChildProcess;
  /** Resolves once the text has been printed. */
  printed(text: string): Promise<void>;
  /** Exit code and everything printed. */
  ended(): Promise<{ code: number | null; output: string }>;
}

function run(start: string, stop: string, graceMs = 5_000, ipc = false): Run {
  const script = `
    import { createLogger, runProcess, ConfigError } from ${JSON.stringify(built)};
    setInterval(() => {}, 1000);
    runProcess({ name: "test", logger: createLogger({ name: "test" }), graceMs: ${graceMs},
      start: async () => { ${start} }, stop: async () => { ${stop} } });`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ipc ? ["ignore", "pipe", "pipe", "ipc"] : ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let output = "";
  // Not "close": with an IPC channel that this side has closed, it may never come.
  const exit = Promise.all([
    once(child, "exit"),
    once(child.stdout ?? child, "end"),
    once(child.stderr ?? child, "end"),
  ]);
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => {
      output += chunk;
      for (const watcher of watchers) watcher();
    });
  }
  const printed = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!output.includes(text)) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  return {
    child,
    printed,
    ended: async () => {
      await exit;
      return { code: child.exitCode, output };
    },
  };
}

describe("runProcess", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("stops once on %s and exits 0", async (signal) => {
    const app = run("", "console.log('closing')");
    await app.printed('"started"');
    app.child.kill(signal);
    const { code, output } = await app.ended();
    expect(code).toBe(0);
    expect(output.match(/closing/g)).toHaveLength(1);
  });

  it("exits at once on a second signal", async () => {
    const app = run("", "console.log('closing'); await new Promise(() => {})", 60_000);
    await app.printed('"started"');
    app.child.kill("SIGTERM");
    await app.printed("closing");
    app.child.kill("SIGTERM");
    expect((await app.ended()).code).toBe(130);
  });

  it("exits at the grace limit when stopping hangs", async () => {
    const app = run("", "await new Promise(() => {})", 50);
    await app.printed('"started"');
    app.child.kill("SIGTERM");
    const { code, output } = await app.ended();
    expect(code).toBe(1);
    expect(output).toContain("grace limit");
  });

  it.each([
    ["an uncaught error", "setImmediate(() => { throw new TypeError('planted secret') })", "uncaughtException"],
    ["an unhandled rejection", "void Promise.reject(new TypeError('planted secret'))", "unhandledRejection"],
  ])("logs %s by type and exits 1", async (_, start, kind) => {
    const { code, output } = await run(start, "").ended();
    expect(code).toBe(1);
    expect(output).toContain(kind);
    expect(output).toContain("TypeError");
    expect(output).not.toContain("planted");
  });

  it("closes what was opened and exits 1 when the start fails, naming the remedy", async () => {
    const problem = `[{ variable: "PORT", problem: "is taken", remedy: "Choose another" }]`;
    const app = run(`throw new ConfigError("test", ${problem})`, "console.log('closing')");
    const { code, output } = await app.ended();
    expect(code).toBe(1);
    expect(output).toContain("PORT is taken. Choose another.");
    expect(output).toContain("closing");
  });

  it("stops when the parent that spawned it is gone", async () => {
    const app = run("", "console.log('closing')", 5_000, true);
    await app.printed('"started"');
    app.child.disconnect();
    const { code, output } = await app.ended();
    expect(code).toBe(0);
    expect(output).toContain("parent-gone");
  });
});
