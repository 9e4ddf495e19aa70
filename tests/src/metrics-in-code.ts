import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../..", import.meta.url));

/** A file of the repository, as text. */
export const readText = (path: string): Promise<string> => readFile(join(repository, path), "utf8");

/** A metric as it is registered, or as docs/metrics.md describes it. */
export interface MetricFacts {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

const registration =
  /\.(counter|gauge|histogram)(?:<[^>]*>)?\(\s*\{\s*name: "(countersign_\w+)",\s*help:\s*"[^"]*",?\s*(?:labels: \[([^\]]*)\])?/g;

/** Every metric that the source of packages and apps registers, by name; one that several processes have stands once. */
export async function metricsInCode(): Promise<MetricFacts[]> {
  const facts = new Map<string, MetricFacts>();
  let mentioned = 0;
  let parsed = 0;
  for (const path of await sources()) {
    const text = await readText(path);
    mentioned += [...text.matchAll(/name: "countersign_/g)].length;
    for (const [, type = "", name = "", labels = ""] of text.matchAll(registration)) {
      parsed += 1;
      facts.set(name, { name, type, labels: [...labels.matchAll(/"(\w+)"/g)].map(([, label = ""]) => label) });
    }
  }
  if (parsed !== mentioned) throw new Error(`${mentioned} metrics are registered, ${parsed} of them in the usual form`);
  return [...facts.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function sources(): Promise<string[]> {
  const found: string[] = [];
  for (const folder of ["packages", "apps"]) {
    for (const entry of await readdir(join(repository, folder))) {
      const source = join(folder, entry, "src");
      const files = await readdir(join(repository, source), { recursive: true }).catch(() => []);
      found.push(...files.filter(isProduct).map((file) => join(source, file)));
    }
  }
  return found;
}

const isProduct = (file: string): boolean => file.endsWith(".ts") && !/\.test\.ts$|(^|\/)testing\.ts$/.test(file);

/** The rows of the tables of docs/metrics.md. */
export async function metricsInDocs(): Promise<MetricFacts[]> {
  const rows = (await readText("docs/metrics.md")).matchAll(/^\| `(countersign_\w+)` \| (\w+) \| ([^|]*)\|/gm);
  const facts = [...rows].map(([, name = "", type = "", labels = ""]) => ({
    name,
    type,
    labels: labels.split(",").flatMap((label) => (label.trim() === "" ? [] : [label.trim()])),
  }));
  return facts.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Names of our metrics in an expression; those of a histogram's parts as the histogram. */
export function metricsInExpression(expression: string, known: readonly MetricFacts[]): string[] {
  const histograms = new Set(known.filter(({ type }) => type === "histogram").map(({ name }) => name));
  return [...expression.matchAll(/\bcountersign_\w+/g)].map(([name]) => {
    const whole = name.replace(/_(bucket|count|sum)$/, "");
    return histograms.has(whole) ? whole : name;
  });
}
