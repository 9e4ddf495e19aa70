import type { Command } from "commander";
import { z } from "zod";
import { bashCompletion } from "../completion/bash.js";
import { fishCompletion } from "../completion/fish.js";
import { completionTree } from "../completion/tree.js";
import { zshCompletion } from "../completion/zsh.js";
import { type CommandTools, define } from "../define.js";

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
const shells = ["bash", "zsh", "fish"] as const;

/** `completion bash|zsh|fish`. Call it last: it completes the commands that the program has when it runs. */
export function addCompletion(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "completion",
    description:
      "Print what makes a shell complete commands and options. bash: source <(countersign completion bash) in ~/.bashrc; " +
      "zsh: the same after compinit in ~/.zshrc; fish: write it to ~/.config/fish/completions/countersign.fish.",
    example: "countersign completion bash > ~/.local/share/bash-completion/completions/countersign",
    options: (command) => command.argument("<shell>", "which"),
    choices: { shell: shells },
    schema: z.object({ shell: z.enum(shells, `must be one of ${shells.join(", ")}`) }),
    run: async ({ shell }) => {
      const script = scripts[shell](completionTree(program));
      return { value: { shell, script }, text: script.trimEnd() };
    },
  });
}
