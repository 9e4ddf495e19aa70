import { type ActionCapability, providers } from "@countersign/provider";
import { actions } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { UsageError } from "../errors.js";

/** `providers`: the capability record of every adapter, line by line, with the reference that supports it. */
export function addProviders(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "providers",
    description: "What each adapter relies on, per action, and which reference says so (assumptions are marked).",
    example: "countersign providers wesign",
    options: (command) => command.argument("[name]", "one adapter only"),
    schema: z.object({ name: z.string().optional() }),
    run: async ({ name }) => {
      const known = providers.all.filter((each) => name === undefined || each.name === name);
      if (known.length === 0) {
        throw new UsageError(`<name> must be one of ${providers.all.map((each) => each.name).join(", ")}; see --help`);
      }
      return {
        value: known.map((each) => ({ name: each.name, capabilities: each.capabilities })),
        text: known
          .map((each) =>
            [`# ${each.name}`, ...actions.map((action) => describe(action, each.capabilities[action]))].join("\n\n"),
          )
          .join("\n\n"),
      };
    },
  });
}

const hours = (ms: number): string => (ms >= 3_600_000 ? `${ms / 3_600_000} h` : `${ms / 1_000} s`);

function describe(action: string, capability: ActionCapability): string {
  if (!capability.supported) return `${action}: not supported`;
  const { lookup, secondStep, answers, reference } = capability;
  const paths = [
    lookup.byReference ? "by reference" : "",
    lookup.byMetadata ? "by our metadata" : "",
    lookup.many === true ? "many by one list" : "",
  ];
  const ways = paths.filter(Boolean).join(", ") || "none";
  const lines: [string, string][] = [
    ["idempotency", idempotency(capability)],
    ["", capability.idempotency.note],
    [
      "lookups",
      `${ways}${ways === "none" ? "" : lookup.documented ? " (documented)" : " (assumed: verify the connection)"}`,
    ],
    ["", lookup.note],
    [
      "visible after",
      `${hours(lookup.consistencyLagMs)}; ${lookup.retentionMs === undefined ? "no end documented" : `until ${hours(lookup.retentionMs)}`}`,
    ],
    [
      "poll budget",
      lookup.minIntervalMs === undefined || lookup.minIntervalMs === 0
        ? "none documented"
        : `once per ${hours(lookup.minIntervalMs)}`,
    ],
    ["webhook evidence", capability.webhookEvidence ? "yes" : "no"],
    ["its 2xx is proof", capability.answerIsAuthoritative ? "yes" : "only with a reference, or by looking"],
    ...(secondStep === undefined
      ? []
      : [["second step", `${secondStep.note} Repeat: ${secondStep.repeatAnswer}.`] satisfies [string, string]]),
    ["window", `quiescence ${hours(capability.quiescenceMs)}, deadline ${hours(capability.deadlineMs)}`],
    [
      "answers",
      (answers ?? [])
        .map(({ status, code, means, assumed }) => `${status} ${code} = ${means}${assumed ? " (assumed)" : ""}`)
        .join("; ") || "none listed",
    ],
    [
      "reference",
      `${reference.source}, checked ${reference.checkedOn}${capability.assumed ? "; parts are assumed" : ""}`,
    ],
  ];
  return [action, ...lines.map(([what, text]) => `  ${what.padEnd(17)} ${text}`)].join("\n");
}

function idempotency({ idempotency: how }: ActionCapability): string {
  switch (how.kind) {
    case "none":
      return "none";
    case "natural":
      return `natural: a repeat answers ${how.repeatAnswer}`;
    case "keyed": {
      const replay = how.replaySafe ? "replay safe" : `replay not safe (${how.replayRisk ?? "undocumented"})`;
      return `keyed by ${how.header}, ${how.scope}, ${hours(how.retentionMs)}; changed body: ${how.changedBody}; ${replay}`;
    }
  }
}
