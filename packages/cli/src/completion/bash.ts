import type { CompletionNode } from "./tree.js";

/**
 * For bash 3.2 and later, with or without the bash-completion package. Static: a press of TAB starts no process and
 * evaluates nothing of what was typed.
 */
export function bashCompletion(nodes: readonly CompletionNode[]): string {
  return `# bash completion of countersign: source <(countersign completion bash)
_countersign_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$1"))
  compopt -o filenames 2>/dev/null || true # bash 3.2 has none
}
_countersign() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
${steps(nodes)}
    esac
  done
  case "$at $prev" in
${values(nodes)}
  esac
  case "$at" in
${nodes.map((node) => `    ${quoted(node.path)}) words=${quoted(words(node))} ;;`).join("\n")}
  esac
  if [[ "$cur" != -* && "$words" == *" -- "* ]]; then words="\${words%% -- *}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _countersign countersign
`;
}

const quoted = (text: string): string => `"${text}"`;

function steps(nodes: readonly CompletionNode[]): string {
  return nodes
    .filter(({ path }) => path !== "")
    .map(({ path, spellings }) => `      ${spellings.map(quoted).join("|")}) at=${quoted(path)} ;;`)
    .join("\n");
}

/** What may follow an option that takes a value. */
function values(nodes: readonly CompletionNode[]): string {
  return nodes
    .flatMap(({ path, options }) =>
      options.flatMap(({ name, takes, choices }) => {
        const place = quoted(`${path} ${name}`);
        if (takes === "nothing") return [];
        if (takes === "file") return [`    ${place}) _countersign_files "$cur"; return ;;`];
        if (takes === "text") return [`    ${place}) return ;;`];
        return [`    ${place}) COMPREPLY=($(compgen -W ${quoted(choices.join(" "))} -- "$cur")); return ;;`];
      }),
    )
    .join("\n");
}

/** Names first; after ` -- ` what is offered only once a dash is typed. */
function words({ commands, argumentChoices, options }: CompletionNode): string {
  const names = [...commands.map(({ name }) => name), ...argumentChoices].join(" ");
  const flags = options.map(({ name }) => name).join(" ");
  return names === "" ? flags : `${names} -- ${flags}`;
}
