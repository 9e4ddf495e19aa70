import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

describe("the process", () => {
  it("explains itself with --help", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "--help"]);
    for (const option of ["--port", "--host", "--seed", "--config"]) expect(stdout).toContain(option);
  });

  it("prints its address, serves, and ends on SIGTERM", async () => {
    const config = JSON.stringify({ latencyMs: 3 });
    const child = spawn(process.execPath, [MAIN, "--seed", "7", "--config", config], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [line] = await once(createInterface(child.stdout), "line");
      const { url, pid } = z.object({ url: z.string(), pid: z.number() }).parse(JSON.parse(String(line)));
      expect(pid).toBe(child.pid);
      const answered = await fetch(`${url}/_control/config`);
      expect(await answered.json()).toMatchObject({ seed: "7", latencyMs: 3 });
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("refuses an unknown option by name", async () => {
    const run = promisify(execFile)(process.execPath, [MAIN, "--config", '{"sed":1}']);
    await expect(run).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("sed") });
  });
});
