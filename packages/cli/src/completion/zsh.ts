import type { CompletionNode, CompletionOption } from "./tree.js";

/** For zsh 5, sourced after `compinit` or kept as `_countersign` in `$fpath`. */
export function zshCompletion(nodes: readonly CompletionNode[]): string {
  return `#compdef countersign
# zsh completion of countersign: source <(countersign completion zsh)
_countersign() {
  local at="" i
  local -a names flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at $words[i]" in
${steps(nodes)}
    esac
  done
  case "$at $words[CURRENT-1]" in
${values(nodes)}
  esac
  case "$at" in
${nodes.map(offers).join("\n")}
  esac
  if [[ "$words[CURRENT]" == -* || $#names -eq 0 ]]; then _describe -o option flags; else _describe command names; fi
}
if [[ "$funcstack[1]" == _countersign ]]; then _countersign "$@"; else compdef _countersign countersign; fi
`;
}

/** In single quotes, nothing is expanded. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const described = (name: string, description: string): string => quoted(`${name}:${description}`);

function steps(nodes: readonly CompletionNode[]): string {
  return nodes
    .filter(({ path }) => path !== "")
    .map(({ path, spellings }) => `      ${spellings.map(quoted).join("|")}) at=${quoted(path)} ;;`)
    .join("\n");
}

function values(nodes: readonly CompletionNode[]): string {
  return nodes
    .flatMap(({ path, options }) =>
      options
        .filter(({ takes }) => takes !== "nothing")
        .map((option) => `    ${quoted(`${path} ${option.name}`)}) ${offerValue(option)}return ;;`),
    )
    .join("\n");
}

function offerValue({ takes, choices, name, description }: CompletionOption): string {
  if (takes === "file") return "_files; ";
  if (takes === "choice") return `compadd -- ${choices.map(quoted).join(" ")}; `;
  return `_message ${quoted(`${name}: ${description}`)}; `;
}

function offers({ path, commands, argumentChoices, options }: CompletionNode): string {
  const names = [
    ...commands.map(({ name, description }) => described(name, description)),
    ...argumentChoices.map(quoted),
  ];
  const flags = options.map(({ name, description }) => described(name, description));
  return `    ${quoted(path)}) names=(${names.join(" ")}); flags=(${flags.join(" ")}) ;;`;
}
