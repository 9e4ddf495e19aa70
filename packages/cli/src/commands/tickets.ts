import { listTickets, toIso } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { integerOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `tickets list`. */
export function addTickets(program: Command, tools: CommandTools): void {
  const tickets = program.command("tickets").description("What somebody has been asked to look at.");
  define(tickets, tools, {
    name: "list",
    description: "Open tickets of a tenant, the most urgent first.",
    example: "countersign tickets list --tenant acme",
    options: (command) =>
      command.requiredOption("--tenant <id>", "whose tickets").option("--limit <n>", "how many at most", "100"),
    schema: z.object({ tenant: tenantOption, limit: integerOption(1, 1_000) }),
    run: async ({ tenant, limit }, io) => {
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listTickets(ledger, tenant, limit);
      });
      const rows = list.map((each) => [
        each.kind,
        each.reason,
        `${each.subjectKind} ${each.subjectId}`,
        each.owner,
        toIso(each.dueAt),
      ]);
      return { value: list, text: table(["kind", "reason", "about", "owner", "due"], rows, "no open tickets") };
    },
  });
}
