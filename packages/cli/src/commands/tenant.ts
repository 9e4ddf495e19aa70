import {
  createTenant,
  defaultThresholds,
  getTenant,
  NotFoundError,
  type ThresholdName,
  ticketKinds,
} from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { UsageError } from "../errors.js";
import { named, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

const team = z.string().trim().min(1, "must name a team").max(200, "must be at most 200 characters");

const isThreshold = (name: string): name is ThresholdName => name in defaultThresholds;
const thresholdNames = Object.keys(defaultThresholds).filter(isThreshold);

/** `tenant create|show`. */
export function addTenant(program: Command, tools: CommandTools): void {
  const tenant = program.command("tenant").description("Tenants: whose operations, tickets and keys are whose.");
  addShow(tenant, tools);
  define(tenant, tools, {
    name: "create",
    description: `Create a tenant. Every ticket kind needs an owner team: ${ticketKinds.join(", ")}.`,
    example: "countersign tenant create --id acme --owner contracts-team --owner-for dead-letter=platform-team",
    options: (command) =>
      command
        .requiredOption("--id <id>", "1 to 63 of a-z, 0-9, _ and -")
        .requiredOption("--owner <team>", "team that owns every kind of ticket not named below")
        .option("--owner-for <kind=team>", "team for one kind of ticket; may be repeated", collect)

        .option(
          "--threshold <name=number>",
          "minutes until a kind of ticket is due, or an age; may be repeated",
          collect,
        ),
    schema: z.object({
      id: tenantOption,
      owner: team,
      ownerFor: z.array(z.string()).default([]),
      threshold: z.array(z.string()).default([]),
    }),
    run: async ({ id, owner, ownerFor, threshold }, io) => {
      const ticketOwners = { default: owner, ...named("--owner-for", ticketKinds, ownerFor) };
      const thresholds = numbersOf(named("--threshold", thresholdNames, threshold));
      await withLedger(io, (ledger) => createTenant(ledger, { tenantId: id, ticketOwners, thresholds }));
      return { value: { tenantId: id, ticketOwners, thresholds }, text: `Tenant ${id} is created.` };
    },
  });
}

function numbersOf(texts: Partial<Record<ThresholdName, string>>): Partial<Record<ThresholdName, number>> {
  const numbers: Partial<Record<ThresholdName, number>> = {};
  for (const name of thresholdNames) {
    const text = texts[name];
    if (text === undefined) continue;
    if (!/^[1-9]\d{0,5}$/.test(text))
      throw new UsageError(`--threshold ${name} must be a whole number from 1 to 999999`);
    numbers[name] = Number(text);
  }
  return numbers;
}

function addShow(tenant: Command, tools: CommandTools): void {
  define(tenant, tools, {
    name: "show",
    description: "Who owns which tickets of a tenant, and its thresholds.",
    example: "countersign tenant show acme",
    options: (command) => command.argument("<id>", "which tenant"),
    schema: z.object({ id: tenantOption }),
    run: async ({ id }, io) => {
      const found = await withLedger(io, (ledger) => getTenant(ledger, id));
      if (found === undefined) throw new NotFoundError("tenant");
      const rows = thresholdNames.map((name) => [
        name,
        found.ticketOwners[name] ?? "",
        String(found.thresholds[name] ?? ""),
      ]);
      return { value: found, text: table(["kind or age", "owner", "minutes (age-attempts: attempts)"], rows, "") };
    },
  });
}
