import type { Argument, Command, Option } from "commander";

/** One command as a shell completes it. */
export interface CompletionNode {
  /** Canonical names from below the program, each after a space: ` tenant create`; empty for the program. */
  readonly path: string;
  /** The same with aliases: every way of writing it as one step from its parent's canonical path. */
  readonly spellings: readonly string[];
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletionOption[];
  /** Of its first argument; empty where any text will do. */
  readonly argumentChoices: readonly string[];
}

export interface CompletionOption {
  /** `--tenant`. */
  readonly name: string;
  readonly description: string;
  readonly takes: "nothing" | "text" | "file" | "choice";
  readonly choices: readonly string[];
}

/** Every command of a program, the program first. */
export function completionTree(program: Command): CompletionNode[] {
  return walk(program, "", [""]);
}

function walk(command: Command, path: string, spellings: readonly string[]): CompletionNode[] {
  const children = command.commands;
  const node: CompletionNode = {
    path,
    spellings,
    commands: children.map((each) => ({ name: each.name(), description: firstSentence(each.description()) })),
    options: [...command.options.map(optionOf), help],
    argumentChoices: choicesOf(command.registeredArguments[0]),
  };
  return [
    node,
    ...children.flatMap((each) =>
      walk(
        each,
        `${path} ${each.name()}`,
        [each.name(), ...each.aliases()].map((name) => `${path} ${name}`),
      ),
    ),
  ];
}

const help: CompletionOption = {
  name: "--help",
  description: "what it does, with an example",
  takes: "nothing",
  choices: [],
};

function optionOf(option: Option): CompletionOption {
  const choices = option.argChoices ?? [];
  const named = { name: option.long ?? option.flags, description: firstSentence(option.description), choices };
  if (!option.required && !option.optional) return { ...named, takes: "nothing" };
  if (choices.length > 0) return { ...named, takes: "choice" };
  return { ...named, takes: /<(path|pdf)>/.test(option.flags) ? "file" : "text" };
}

const choicesOf = (argument: Argument | undefined): readonly string[] => argument?.argChoices ?? [];

/** Lists show one line. */
const firstSentence = (text: string): string => text.split(/(?<=[.:;]) /)[0]?.replace(/[.:;]$/, "") ?? "";
