import { type Command, CommanderError } from "commander";
import type { z } from "zod";
import { asCliError, type ExitCode, exitCodes, UsageError } from "./errors.js";
import type { CliIo } from "./io.js";

/** What a command leaves: one JSON document, and the same for a reader. */
export interface Result {
  readonly value: unknown;
  readonly text: string;
  /** 0 when left out. */
  readonly exitCode?: ExitCode;
}

/** The last line of every `--help`. */
export const exitHelp = "Exit codes: 0 done, 1 refused, 2 usage, 3 unreachable.";

/** One command: its options as commander knows them, their meaning as zod checks it, and its work. */
export interface CommandSpec<Options> {
  readonly name: string;
  readonly description: string;
  readonly example: string;
  /** What its exit codes say, where that is more than {@link exitHelp}. */
  readonly exits?: string;
  options?(command: Command): Command;
  /** Values of options (`--role`) and arguments (`queue`), for `--help` and shells. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  readonly schema: z.ZodType<Options>;
  run(options: Options, io: CliIo): Promise<Result>;
}

/**
 * Adds a command with `--json` and `--help`. Positional arguments are checked with the options, under their own names.
 * Its exit code is handed to `end`.
 */
export function define<Options>(parent: Command, tools: CommandTools, spec: CommandSpec<Options>): void {
  const command = parent
    .command(spec.name)
    .description(spec.description)
    .option("--json", "print one JSON document")
    .addHelpText("after", `\nExample:\n  $ ${spec.example}\n\n${spec.exits ?? exitHelp}`);
  spec.options?.(command);
  offer(command, spec.choices ?? {});
  command.action(async () => {
    const { io } = tools;
    const json = command.opts().json === true;
    try {
      const result = await spec.run(checked(command, spec.schema), io);
      io.out(json ? JSON.stringify(result.value) : result.text);
      tools.end(result.exitCode ?? exitCodes.done);
    } catch (error) {
      const { code, safeMessage, exitCode } = asCliError(error);
      if (json) io.out(JSON.stringify({ error: { code, message: safeMessage } }));
      io.err(`countersign: ${safeMessage}`);
      tools.end(exitCode);
    }
  });
}

export interface CommandTools {
  readonly io: CliIo;
  end(exitCode: ExitCode): void;
}

function checked<Options>(command: Command, schema: z.ZodType<Options>): Options {
  const names = command.registeredArguments.map((argument) => argument.name());
  const given = Object.fromEntries(names.map((name, index) => [name, command.processedArgs[index]]));
  const result = schema.safeParse({ ...command.opts(), ...given });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const [name] = issue?.path ?? [];
  const shown = names.includes(String(name)) ? `<${String(name)}>` : `--${kebab(String(name))}`;
  throw new UsageError(`${shown} ${issue?.message ?? "is not valid"}; see --help`);
}

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Lets an option be given several times. */
export const collect = (value: string, former: string[] = []): string[] => [...former, value];

/** Runs a parse, turning commander's own exits into an exit code. */
export async function parse(program: Command, argv: readonly string[], tools: CommandTools): Promise<void> {
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    const failure = asCliError(error);
    // Without a sub-command commander has already shown the help.
    if (error.code !== "commander.help") tools.io.err(`countersign: ${failure.safeMessage}`);
    tools.end(exitCodes.usage);
  }
}

/** The schema checks the values: commander would repeat what was typed. */
function offer(command: Command, choices: Readonly<Record<string, readonly string[]>>): void {
  for (const [name, values] of Object.entries(choices)) {
    const part =
      command.options.find(({ long }) => long === name) ??
      command.registeredArguments.find((argument) => argument.name() === name);
    if (part !== undefined) part.argChoices = [...values];
  }
}
