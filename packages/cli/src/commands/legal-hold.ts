import { listLegalHolds, placeLegalHold, releaseLegalHold, toIso } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { actorOption, operationOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `legal-hold place|list|release`. */
export function addLegalHold(program: Command, tools: CommandTools): void {
  const parent = program.command("legal-hold").description("Keeping data from every erasure until it is released.");
  addPlace(parent, tools);
  addList(parent, tools);
  addRelease(parent, tools);
}

function addPlace(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "place",
    description: "Keep what belongs to an operation, or to the whole tenant, from retention and from `erase`.",
    example: "countersign legal-hold place --tenant acme --operation 0198… --who u-17 --why 'case 4711'",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose data")
        .option("--operation <id>", "only of this operation; everything of the tenant when left out")
        .requiredOption("--who <id>", "opaque id of who places it")
        .requiredOption("--why <text>", "kept for ever; no names or addresses"),
    schema: z.object({
      tenant: tenantOption,
      operation: operationOption.optional(),
      who: actorOption,
      why: z.string(),
    }),
    run: async ({ tenant, operation, who, why }, io) => {
      const scope = operation === undefined ? {} : { operationId: operation };
      const legalHoldId = await withLedger(io, (ledger) =>
        placeLegalHold(ledger, { tenantId: tenant, by: who, reason: why, ...scope }),
      );
      return {
        value: { legalHoldId },
        text: `Placed. Release it with: countersign legal-hold release ${legalHoldId} --tenant ${tenant} --who <id> --why <text>`,
      };
    },
  });
}

function addList(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "list",
    description: "Legal holds in force.",
    example: "countersign legal-hold list --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose legal holds"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const holds = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listLegalHolds(ledger, tenant);
      });
      const rows = holds.map((each) => [
        each.legalHoldId,
        each.operationId ?? "everything",
        each.placedBy,
        each.reason,
        toIso(each.createdAt),
      ]);
      return { value: holds, text: table(["legal hold", "of", "by", "why", "since"], rows, "no legal holds") };
    },
  });
}

function addRelease(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "release",
    description: "End a legal hold. What has outlived its days is erased by the next run of retention.",
    example:
      "countersign legal-hold release 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme --who u-17 --why settled",
    options: (command) =>
      command
        .argument("<hold>", "its id")
        .requiredOption("--tenant <id>", "whose legal hold")
        .requiredOption("--who <id>", "opaque id of who releases")
        .requiredOption("--why <text>", "kept for ever; no names or addresses"),
    schema: z.object({
      hold: z.uuid("must be the id of a legal hold"),
      tenant: tenantOption,
      who: actorOption,
      why: z.string(),
    }),
    run: async ({ hold: legalHoldId, tenant, who, why }, io) => {
      await withLedger(io, (ledger) =>
        releaseLegalHold(ledger, { tenantId: tenant, legalHoldId, by: who, reason: why }),
      );
      return { value: { legalHoldId, released: true }, text: "Released." };
    },
  });
}
