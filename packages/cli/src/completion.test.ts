import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runLine } from "./testing.js";

const run = promisify(execFile);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cs-completion-"));
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, out } = await runLine(["completion", shell], {});
    expect(code).toBe(0);
    await writeFile(join(folder, shell), `${out}\n`);
  }
});
beforeAll(() => writeFile(join(folder, "a file with spaces"), ""));
afterAll(() => rm(folder, { recursive: true }));

/** What bash offers for these words, the last of them still being typed. Words come in as arguments, never as text. */
async function offered(...words: string[]): Promise<string[]> {
  const script = `source "$0"; COMP_WORDS=(countersign "$@"); COMP_CWORD=$#
    _countersign; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await run("bash", ["--norc", "-c", script, join(folder, "bash"), ...words], { cwd: folder });
  return stdout.split("\n").filter((line) => line !== "");
}

describe("in a real bash", () => {
  it("is registered for the command, and may be sourced twice", async () => {
    const { stdout } = await run("bash", [
      "--norc",
      "-c",
      'source "$0"; source "$0"; complete -p',
      join(folder, "bash"),
    ]);
    expect(stdout).toBe("complete -F _countersign countersign\n");
  });

  it("offers commands, then their commands, also after an alias", async () => {
    expect(await offered("")).toEqual(expect.arrayContaining(["doctor", "queues", "tenant", "completion"]));
    expect(await offered("doc")).toEqual(["doctor"]);
    expect(await offered("connections", "re")).toEqual(["resume"]);
    expect(await offered("inbox", "")).toEqual(["list", "show", "replay", "discard"]);
  });

  it("offers a command's options, and its argument's choices before them", async () => {
    const options = await offered("tenant", "create", "--");
    expect(options).toEqual(expect.arrayContaining(["--id", "--owner", "--json", "--help"]));
    expect(await offered("queues", "pause", "")).toEqual(["submit", "reconcile", "webhook-apply", "notify"]);
    expect(await offered("queues", "pause", "--j")).toEqual(["--json"]);
  });

  it("offers an option's values: its choices, files, and nothing for free text", async () => {
    expect(await offered("console-access", "add", "--role", "")).toEqual(["viewer", "operator"]);
    expect(await offered("send", "--file", "ba")).toEqual(["bash"]);
    expect(await offered("webhook", "verify", "--file", "a ")).toEqual(["a file with spaces"]);
    expect(await offered("tenant", "create", "--id", "")).toEqual([]);
    expect(await offered("tenant", "create", "--id", "list", "--own")).toEqual(["--owner", "--owner-for"]);
  });

  it("evaluates nothing of what was typed", async () => {
    const trap = `$(touch ${join(folder, "evaluated")})`;
    expect(await offered("send", "--why", trap, trap)).toEqual([]);
    expect((await run("ls", [folder])).stdout).not.toContain("evaluated");
  });
});

it.each(["zsh", "fish"])("%s takes its script, where it is installed", async (shell) => {
  const installed = await run("sh", ["-c", `command -v ${shell}`]).then(
    () => true,
    () => false,
  );
  if (!installed) return;
  await run(shell, ["-n", join(folder, shell)]);
});

it("another shell is a usage error that names those there are", async () => {
  const wrong = await runLine(["completion", "MARKER"], {});
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("must be one of bash, zsh, fish")]);
  expect(wrong.err).not.toContain("MARKER");
});
