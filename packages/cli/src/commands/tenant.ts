import {
  createTenant,
  defaultThresholds,
  getTenant,
  listTenants,
  NotFoundError,
  setThresholds,
  setTicketOwners,
  type ThresholdName,
  type TicketKind,
  ticketKinds,
  toIso,
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

/** `tenant list|show|create|set-owner|set-threshold`. */
export function addTenant(program: Command, tools: CommandTools): void {
  const tenant = program
    .command("tenant")
    .alias("tenants")
    .description("Tenants: whose operations, tickets and keys are whose.");
  addList(tenant, tools);
  addShow(tenant, tools);
  addSetOwner(tenant, tools);
  addSetThreshold(tenant, tools);
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

function addList(tenant: Command, tools: CommandTools): void {
  define(tenant, tools, {
    name: "list",
    description: "Every tenant.",
    example: "countersign tenants list",
    schema: z.object({}),
    run: async (_options, io) => {
      const list = (await withLedger(io, listTenants)).map((each) => ({ ...each, createdAt: toIso(each.createdAt) }));
      const rows = list.map((each) => [
        each.tenantId,
        each.createdAt,
        String(each.connections),
        String(each.openTickets),
      ]);
      const text = table(["tenant", "since", "connections", "open tickets"], rows, "no tenants");
      return { value: list, text };
    },
  });
}

function addSetOwner(tenant: Command, tools: CommandTools): void {
  define(tenant, tools, {
    name: "set-owner",
    description: "Change who owns which kinds of ticket. Open tickets of these kinds change hands too.",
    example: "countersign tenants set-owner acme --owner-for dead-letter=platform-team",
    options: (command) =>
      command
        .argument("<id>", "which tenant")
        .option("--owner <team>", "team that owns every kind of ticket not named below")
        .option("--owner-for <kind=team>", "team for one kind of ticket; may be repeated", collect),
    schema: z.object({ id: tenantOption, owner: team.optional(), ownerFor: z.array(z.string()).default([]) }),
    run: async ({ id, owner, ownerFor }, io) => {
      const owners: Partial<Record<TicketKind, string>> = {};
      if (owner !== undefined) for (const kind of ticketKinds) owners[kind] = owner;
      Object.assign(owners, named("--owner-for", ticketKinds, ownerFor));
      const kinds = Object.keys(owners).length;
      if (kinds === 0) throw new UsageError("give --owner, --owner-for or both; see --help");
      const { handedOver } = await withLedger(io, (ledger) => setTicketOwners(ledger, id, owners));
      const text = `Tenant ${id}: ${kinds} kinds have their owner; ${handedOver} open tickets changed hands.`;
      return { value: { tenantId: id, owners, handedOver }, text };
    },
  });
}

function addSetThreshold(tenant: Command, tools: CommandTools): void {
  define(tenant, tools, {
    name: "set-threshold",
    description: "Change after how many minutes a kind of ticket is due, or something counts as aged.",
    example: "countersign tenants set-threshold acme --threshold age-unknown=15",
    options: (command) =>
      command
        .argument("<id>", "which tenant")
        .requiredOption("--threshold <name=number>", `${thresholdNames.join(", ")}; may be repeated`, collect),
    schema: z.object({ id: tenantOption, threshold: z.array(z.string()) }),
    run: async ({ id, threshold }, io) => {
      const thresholds = numbersOf(named("--threshold", thresholdNames, threshold));
      await withLedger(io, (ledger) => setThresholds(ledger, id, thresholds));
      return { value: { tenantId: id, thresholds }, text: `Tenant ${id} has its thresholds.` };
    },
  });
}
