import type { CompletionNode, CompletionOption } from "./tree.js";

/** For fish 3, sourced or kept as `~/.config/fish/completions/countersign.fish`. */
export function fishCompletion(nodes: readonly CompletionNode[]): string {
  return `# fish completion of countersign: countersign completion fish | source
function __countersign_at
    set -l at ''
    set -l typed (commandline -opc)
    set -e typed[1]
    for word in $typed
        switch "$at $word"
${steps(nodes)}
        end
    end
    test "$at" = "$argv[1]"
end
complete -c countersign -e
complete -c countersign -f
${nodes.flatMap(offers).join("\n")}
`;
}

const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function steps(nodes: readonly CompletionNode[]): string {
  return nodes
    .filter(({ path }) => path !== "")
    .map(
      ({ path, spellings }) =>
        `            case ${spellings.map(quoted).join(" ")}\n                set at ${quoted(path)}`,
    )
    .join("\n");
}

function offers({ path, commands, argumentChoices, options }: CompletionNode): string[] {
  const here = `complete -c countersign -n ${quoted(`__countersign_at "${path}"`)}`;
  return [
    ...commands.map(({ name, description }) => `${here} -a ${quoted(name)} -d ${quoted(description)}`),
    ...(argumentChoices.length === 0 ? [] : [`${here} -a ${quoted(argumentChoices.join(" "))}`]),
    ...options.map((option) => `${here} ${offer(option)}`),
  ];
}

function offer({ name, description, takes, choices }: CompletionOption): string {
  const named = `-l ${name.slice(2)} -d ${quoted(description)}`;
  if (takes === "nothing") return named;
  if (takes === "file") return `${named} -r -F`;
  return takes === "choice" ? `${named} -x -a ${quoted(choices.join(" "))}` : `${named} -x`;
}
