import { runCli } from "@countersign/cli";
import { expect, it } from "vitest";
import { readText } from "./metrics-in-code.js";

/** Every `countersign …` in code of the runbook, as its command words and options. */
async function commands(): Promise<{ line: string; words: string[]; options: string[] }[]> {
  const text = await readText("docs/runbook.md");
  // A command may be broken over two lines inside its backticks.
  const inline = [...text.matchAll(/`(countersign [^`]+)`/g)].map(([, line = ""]) => line.replaceAll("\n", " "));
  const block = [...text.matchAll(/^countersign .+$/gm)].map(([line]) => line.replace(/\s+#.*$/, ""));
  return [...new Set([...inline, ...block])].map((line) => {
    const rest = line
      .replace(/'[^']*'/g, "x")
      .split(" ")
      .slice(1);
    const end = rest.findIndex((word) => !/^[a-z-]+$/.test(word) || word.startsWith("-"));
    return {
      line,
      words: rest.slice(0, end === -1 ? undefined : end),
      options: rest.filter((word) => /^--/.test(word)),
    };
  });
}

it("every command that the runbook names exists, with its options", async () => {
  const named = await commands();
  expect(named.length).toBeGreaterThan(20);
  for (const { line, words, options } of named) {
    let help = "";
    const out = (text: string): void => {
      help += text;
    };
    const io = { out, err: out, stdin: async () => Buffer.alloc(0), env: {} };
    expect(await runCli([...words, "--help"], io), line).toBe(0);
    // A word that is no command would show the help of what stands before it.
    expect(help, line).toContain(`Usage: countersign ${words.join(" ")} `);
    for (const option of options) expect(help, line).toContain(option);
  }
});
