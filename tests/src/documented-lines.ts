import { readFile } from "node:fs/promises";

/** A row of a table of lines in docs/logs.md. */
export interface DocumentedLine {
  readonly level: string;
  readonly processes: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  readonly optional: ReadonlySet<string>;
}

/** What every line has. */
export const commonFields: ReadonlySet<string> = new Set(["level", "time", "pid", "name", "msg"]);

const workers = ["submit-worker", "reconcile-worker", "webhook-apply"] as const;
const all = [...workers, "enqueuer", "webhook-ingress", "console"] as const;
const processesOf = (word: string): readonly string[] => (word === "all" ? all : word === "workers" ? workers : [word]);

const logsPage = new URL("../../docs/logs.md", import.meta.url);
const words = (cell: string): string[] => cell.split(",").flatMap((word) => word.trim() || []);

/** The lines that docs/logs.md promises, by name. */
export async function documentedLines(): Promise<ReadonlyMap<string, DocumentedLine>> {
  const lines = new Map<string, DocumentedLine>();
  for (const row of (await readFile(logsPage, "utf8")).split("\n")) {
    const cells = /^\| `([^`]+)` \| (info|warn|error|fatal) \| ([^|]*)\|([^|]*)\|/.exec(row);
    if (cells === null) continue;
    const [, name = "", level = "", processes = "", fields = ""] = cells;
    const optional = words(fields).flatMap((field) => (field.endsWith("?") ? field.slice(0, -1) : []));
    const required = words(fields).filter((field) => !field.endsWith("?"));
    if (lines.has(name)) throw new Error(`${name} stands twice in docs/logs.md`);
    lines.set(name, {
      level,
      processes: new Set(words(processes).flatMap(processesOf)),
      required: new Set(required),
      optional: new Set(optional),
    });
  }
  return lines;
}

/** What is wrong with a line, by what the page says; empty where nothing is. */
export function faultsOf(line: Readonly<Record<string, unknown>>, documented: DocumentedLine | undefined): string[] {
  if (documented === undefined) return ["is not documented"];
  const fields = Object.keys(line).filter((field) => !commonFields.has(field));
  const { level, processes, required, optional } = documented;
  return [
    ...(line.level === level ? [] : [`has level ${line.level}, not ${level}`]),
    ...(processes.has(String(line.name)) ? [] : [`is not documented for ${line.name}`]),
    ...[...required].filter((field) => !(field in line)).map((field) => `lacks ${field}`),
    ...fields.filter((field) => !required.has(field) && !optional.has(field)).map((field) => `has ${field} besides`),
    ...fields.filter((field) => line[field] === "[dropped]").map((field) => `lost its ${field}`),
  ];
}
