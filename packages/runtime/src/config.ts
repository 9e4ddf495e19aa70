import { z } from "zod";

/** One environment variable that keeps a process from starting: which, what it must be, and what to do. */
export interface ConfigProblem {
  readonly variable: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Settings that must not start. Its message lists every problem and never repeats a value, which may be a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly ConfigProblem[];
  readonly safeMessage: string;

  constructor(processName: string, problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ variable, problem, remedy }) => `${variable} ${problem}. ${remedy}.`);
    super(`${processName} cannot start: ${lines.join(" ")}`);
    this.problems = problems;
    this.safeMessage = this.message;
  }
}

/** Environment variable names, each with its zod schema, which reads the raw text and carries default and description. */
export type ConfigShape = Readonly<Record<string, z.ZodType>>;
export type Config<Shape extends ConfigShape> = z.output<z.ZodObject<Shape>>;

/** The variables of `process.env`, or a test's own. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads a process's settings from its environment. An empty variable counts as unset (compose files pass those). All
 * problems are reported at once. A `COUNTERSIGN_…` variable that is nearly a known name is refused with the name meant,
 * since a misspelt setting would otherwise be silently ignored.
 * @throws ConfigError
 */
export function loadConfig<Shape extends ConfigShape>(
  shape: Shape,
  env: Environment,
  options: { readonly name: string },
): Config<Shape> {
  const set = Object.fromEntries(Object.keys(shape).map((key) => [key, env[key] === "" ? undefined : env[key]]));
  const result = z.object(shape).safeParse(set);
  const problems = [...misspelt(Object.keys(shape), env)];
  if (!result.success) problems.push(...describe(shape, set, result.error));
  if (problems.length > 0 || !result.success) throw new ConfigError(options.name, problems);
  return result.data;
}

/**
 * For a process's `main`: runs what reads settings; where they must not start, prints every problem on one line each,
 * without a stack trace, and exits with 2.
 */
export function settingsOrExit<Settings>(read: () => Settings): Settings {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const lines = error.problems.map(({ variable, problem, remedy }) => `  ${variable} ${problem}. ${remedy}.\n`);
    process.stderr.write(`${error.message.slice(0, error.message.indexOf(":"))}:\n${lines.join("")}`);
    process.exit(2);
  }
}

function describe(shape: ConfigShape, set: Environment, error: z.ZodError): ConfigProblem[] {
  const variables = new Set(error.issues.map((issue) => String(issue.path[0])));
  return [...variables].map((variable) => {
    const must = shape[variable]?.description ?? "a valid value";
    return set[variable] === undefined
      ? { variable, problem: "is missing", remedy: `Set it to ${must}` }
      : { variable, problem: `must be ${must}`, remedy: "Correct it, or unset it to use the default if it has one" };
  });
}

function* misspelt(known: readonly string[], env: Environment): Generator<ConfigProblem> {
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith("COUNTERSIGN_") || known.includes(variable)) continue;
    const near = known.find((name) => name.startsWith("COUNTERSIGN_") && editDistance(name, variable) <= 3);
    if (near !== undefined) {
      yield { variable, problem: "is not a setting", remedy: `Did you mean ${near}? Rename or unset it` };
    }
  }
}

/** Levenshtein distance. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [i, a] of [...left].entries()) {
    const next = [i + 1];
    for (const [j, b] of [...right].entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
