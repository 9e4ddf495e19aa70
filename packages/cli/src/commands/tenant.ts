import { createTenant, type TicketKind, ticketKinds } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { UsageError } from "../errors.js";
import { perTicketKind, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

const team = z.string().trim().min(1, "must name a team").max(200, "must be at most 200 characters");

/** `tenant create`. */
export function addTenant(program: Command, tools: CommandTools): void {
  const tenant = program.command("tenant").description("Tenants: whose operations, tickets and keys are whose.");
  define(tenant, tools, {
    name: "create",
    description: `Create a tenant. Every ticket kind needs an owner team: ${ticketKinds.join(", ")}.`,
    example: "countersign tenant create --id acme --owner contracts-team --owner-for dead-letter=platform-team",
    options: (command) =>
      command
        .requiredOption("--id <id>", "1 to 63 of a-z, 0-9, _ and -")
        .requiredOption("--owner <team>", "team that owns every kind of ticket not named below")
        .option("--owner-for <kind=team>", "team for one kind of ticket; may be repeated", collect)
        .option("--threshold <kind=minutes>", "minutes until such a ticket is due (60); may be repeated", collect),
    schema: z.object({
      id: tenantOption,
      owner: team,
      ownerFor: z.array(z.string()).default([]),
      threshold: z.array(z.string()).default([]),
    }),
    run: async ({ id, owner, ownerFor, threshold }, io) => {
      const ticketOwners = { default: owner, ...perTicketKind("--owner-for", ownerFor) };
      const thresholds = minutesOf(perTicketKind("--threshold", threshold));
      await withLedger(io, (ledger) => createTenant(ledger, { tenantId: id, ticketOwners, thresholds }));
      return { value: { tenantId: id, ticketOwners, thresholds }, text: `Tenant ${id} is created.` };
    },
  });
}

function minutesOf(texts: Partial<Record<TicketKind, string>>): Partial<Record<TicketKind, number>> {
  const minutes: Partial<Record<TicketKind, number>> = {};
  for (const kind of ticketKinds) {
    const text = texts[kind];
    if (text === undefined) continue;
    if (!/^[1-9]\d{0,5}$/.test(text))
      throw new UsageError(`--threshold ${kind} must be whole minutes from 1 to 999999`);
    minutes[kind] = Number(text);
  }
  return minutes;
}
