import { readFileSync, statSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { alive, Command, descendants, waitUntil } from "./testing.js";

const runFile = z.object({
  pid: z.int(),
  api: z.string(),
  processes: z.array(z.object({ name: z.string(), pid: z.int(), url: z.string() })),
});

let folder = "";
let command: Command | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "countersign-start-"));
  await chmod(folder, 0o755);
});
afterEach(() => {
  command?.child.kill("SIGKILL");
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

const record = () => runFile.parse(JSON.parse(readFileSync(join(folder, "run.json"), "utf8")));
const submitter = () => record().processes.find(({ name }) => name === "submit-2")?.pid ?? 0;
const ready = async (url: string): Promise<boolean> => {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined);
  return answer?.ok === true;
};

it("the fleet is up at the addresses in run.json, heals a killed process, and is gone after SIGINT", {
  timeout: 120_000,
}, async () => {
  command = new Command("start-main.js", ["--data-dir", folder, "--scale", "submit=2"]);
  const ended = command.ended();
  await command.printed("Running until Ctrl-C");
  const { pid, processes } = record();
  expect(pid).toBe(command.pid);
  expect(processes.map(({ name }) => name)).toEqual([
    "enqueuer",
    "webhook-ingress",
    "console",
    "submit-1",
    "submit-2",
    "reconcile",
    "webhook-apply",
  ]);
  for (const { url } of processes) expect(await ready(url)).toBe(true);
  for (const name of ["encryption-key", "env"]) expect(statSync(join(folder, name)).mode & 0o077).toBe(0);

  const second = new Command("start-main.js", ["--data-dir", folder]);
  expect(await second.ended()).toBe(1);
  expect(second.stdout).toMatch(/runs here already \(pid \d+/);

  const former = submitter();
  process.kill(former, "SIGKILL");
  await command.printed("submit-2 ended by itself (SIGKILL)");
  await waitUntil(() => submitter() !== former);

  const children = descendants(command.pid);
  command.child.kill("SIGINT");
  expect(await ended).toBe(0);
  await waitUntil(() => alive(children).length === 0);
  expect(() => record()).toThrow("ENOENT");
});

it("a database of one's own without a key is refused, with the remedy", async () => {
  command = new Command("start-main.js", ["--data-dir", folder], { DATABASE_URL: "postgres://nobody@127.0.0.1:1/x" });
  expect(await command.ended()).toBe(1);
  expect(command.stdout).toMatch(/COUNTERSIGN_ENCRYPTION_KEY is missing.*openssl rand/);
});
