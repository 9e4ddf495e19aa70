import {
  explain,
  getHistory,
  getNearMisses,
  getOperation,
  getReferences,
  type Ledger,
  listOperations,
  NotFoundError,
  type OperationView,
  sent,
  states,
  toIso,
} from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { integerOption, operationOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `show`, `explain` and `operations list`. */
export function addOperations(program: Command, tools: CommandTools): void {
  addShow(program, tools);
  addExplain(program, tools);
  addList(program, tools);
}

const one = z.object({ operation: operationOption, tenant: tenantOption });
const oneOptions = (command: Command): Command =>
  command.argument("<operation>", "its id").requiredOption("--tenant <id>", "whose operation");

async function found(ledger: Ledger, tenant: string, operation: string): Promise<OperationView> {
  const view = await getOperation(ledger, tenant, operation);
  if (view === undefined) throw new NotFoundError("operation");
  return view;
}

function addShow(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "show",
    description: "An operation with its references and whole history.",
    example: "countersign show 0190b7e2-0000-7000-8000-000000000001 --tenant acme",
    options: oneOptions,
    schema: one,
    run: async ({ operation, tenant }, io) =>
      await withLedger(io, async (ledger) => {
        const view = await found(ledger, tenant, operation);
        const history = await getHistory(ledger, tenant, operation);
        const nearMisses = await getNearMisses(ledger, tenant, operation);
        const references = await getReferences(ledger, tenant, operation);
        const { because, nextLookAt } = explain(view, history, nearMisses);
        const facts = [
          ["operation", view.operationId],
          ["action", view.action],
          ["state", `${view.state} (${view.reason})`],
          ["sent", sent(view)],
          ["connection", view.connectionId],
          ["attempts", String(view.attemptNo)],
          ["planned", toIso(view.createdAt)],
          ["next look", nextLookAt ?? "none"],
          ...(view.supersededBy === null ? [] : [["superseded by", view.supersededBy]]),
          ...(view.targetOperationId === null ? [] : [["target", view.targetOperationId]]),
          ...references.map(({ providerRef, role, source }) => [`reference (${role})`, `${providerRef} by ${source}`]),
        ];
        const lines = facts.map(([name, value]) => `${(name ?? "").padEnd(20)} ${value ?? ""}`);
        return {
          value: { ...view, sent: sent(view), because, nextLookAt, references, history, nearMisses },
          text: [...lines, "", ...because].join("\n"),
        };
      }),
  });
}

function addExplain(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "explain",
    description: "Did it go out or not, how do we know, what happens next, and when does somebody look next.",
    example: "countersign explain 0190b7e2-0000-7000-8000-000000000001 --tenant acme",
    options: oneOptions,
    schema: one,
    run: async ({ operation, tenant }, io) =>
      await withLedger(io, async (ledger) => {
        const view = await found(ledger, tenant, operation);
        const value = explain(
          view,
          await getHistory(ledger, tenant, operation),
          await getNearMisses(ledger, tenant, operation),
        );
        const look =
          view.state === "NEEDS_REVIEW"
            ? `A person has to look: countersign tickets list --tenant ${tenant}.`
            : value.nextLookAt === null
              ? "Nothing is due on it."
              : `Somebody looks next at ${value.nextLookAt}.`;
        const because = value.because.map((sentence) => `  ${sentence}`);
        return {
          value: { operationId: operation, state: view.state, ...value },
          text: [value.answer, "How do we know:", ...because, `What happens next: ${value.next}`, look].join("\n"),
        };
      }),
  });
}

function addList(program: Command, tools: CommandTools): void {
  const operations = program.command("operations").description("Operations of a tenant.");
  define(operations, tools, {
    name: "list",
    description: "Operations of a tenant, newest first.",
    example: "countersign operations list --tenant acme --state UNKNOWN",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose operations")
        .option("--state <state>", "only those in this one")
        .option("--limit <n>", "how many at most", "50")
        .option("--cursor <operation>", "go on after this one"),
    choices: { "--state": states },
    schema: z.object({
      tenant: tenantOption,
      state: z.enum(states, `must be one of ${states.join(", ")}`).optional(),
      limit: integerOption(1, 1_000),
      cursor: operationOption.optional(),
    }),
    run: async ({ tenant, state, limit, cursor }, io) => {
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listOperations(ledger, tenant, {
          limit,
          ...(state === undefined ? {} : { state }),
          ...(cursor === undefined ? {} : { cursor }),
        });
      });
      const rows = list.map((view) => [view.operationId, view.action, view.state, sent(view), toIso(view.createdAt)]);
      return {
        value: list.map((view) => ({ ...view, sent: sent(view) })),
        text: table(["operation", "action", "state", "sent", "planned"], rows, "no operations"),
      };
    },
  });
}
