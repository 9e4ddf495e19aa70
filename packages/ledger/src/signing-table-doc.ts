import { effectOf, signingStatuses } from "./signing-table.js";

const words = { applied: "applied", "no-op": "–", conflict: "**conflict**" } as const;

/** The table of states and events as docs/webhooks.md shows it; a test compares the two. */
export function signingTable(): string {
  const head = ["stands \\ told", ...signingStatuses.map((story) => story.toLowerCase().replace("_", " "))];
  const rows = signingStatuses.map((current) => [
    current,
    ...signingStatuses.map((story) => words[effectOf(current, story)]),
  ]);
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
