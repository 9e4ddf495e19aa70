import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { alive, Command, descendants, waitUntil } from "../testing.js";

let temporary = "";
let command: Command | undefined;
beforeEach(async () => {
  // Below /tmp and open to all: the database may run as another user.
  temporary = await mkdtemp(join(tmpdir(), "countersign-demo-test-"));
});
afterEach(async () => {
  command?.child.kill("SIGKILL");
  await rm(temporary, { recursive: true, force: true });
});

/** Databases, eight processes and their faults take ten seconds on a free machine. */
const wholeRunMs = 120_000;

describe("npm run demo", { timeout: wholeRunMs }, () => {
  it("sends each intent once through its faults, says so in one line of JSON, and leaves nothing behind", async () => {
    command = new Command("demo-main.js", ["--intents", "20", "--exit", "--json"]);
    const ended = command.ended();
    await command.printed("processes of the fleet are ready");
    const processes = descendants(command.pid);
    expect(await ended, command.stderr).toBe(0);
    const audit: unknown = JSON.parse(command.stdout.trim().split("\n").at(-1) ?? "");
    expect(audit).toEqual({
      intents: expect.any(Number),
      providerRequests: expect.any(Number),
      duplicates: 0,
      missing: 0,
      wrongVoids: 0,
      throughUnknown: expect.any(Number),
      settledBy: {
        lookup: expect.any(Number),
        webhook: expect.any(Number),
        lateAnswer: expect.any(Number),
        declined: expect.any(Number),
        review: expect.any(Number),
      },
      states: expect.any(Object),
    });
    expect(audit).toMatchObject({ throughUnknown: expect.toSatisfy((count: number) => count >= 2) });
    await waitUntil(() => alive(processes).length === 0);
  });

  it("killed with SIGKILL leaves no process and no folder behind, without Redis too", async () => {
    command = new Command("demo-main.js", ["--intents", "20"], { COUNTERSIGN_NO_REDIS: "1" });
    await command.printed("processes of the fleet are ready");
    expect(command.stdout).toContain("the queues run on PostgreSQL");
    const processes = descendants(command.pid);
    const folders = foldersOf(processes);
    if (process.platform === "linux") expect(folders).not.toEqual([]);
    command.child.kill("SIGKILL");
    await waitUntil(() => alive(processes).length === 0 && !folders.some((folder) => existsSync(folder)));
  });

  it("refuses a contracts file by line and field before it starts anything", async () => {
    command = new Command("demo-main.js", ["--input", join(temporary, "none.jsonl"), "--exit"]);
    expect(await command.ended()).toBe(1);
    expect(command.stdout).toMatch(/none\.jsonl: cannot be read \(ENOENT\)/);
    expect(command.stdout).not.toContain("Starting");
  });

  it.each([
    [["--intents", "0"], /--intents <n>.*whole number/s],
    [["--faults", "2"], /--faults <rate>.*0 to 1/s],
    [["--scale", "enqueuer=2"], /cannot be scaled here/],
    [["--scale", "submit=many"], /number of processes/],
    [["--intent", "5"], /--intents/],
  ])("refuses %j and says what is allowed", async (args, text) => {
    command = new Command("demo-main.js", args);
    expect(await command.ended()).toBe(1);
    expect(command.stderr).toMatch(text);
  });
});

/** Temporary folders of ours that stand in the command lines of these processes. */
function foldersOf(pids: readonly number[]): string[] {
  return pids.flatMap((pid) => {
    const text = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return [...text.matchAll(/\/[^\0]*?\/countersign-(?:demo|postgres|redis)-\w+/g)].map(([folder]) => folder);
  });
}
