import { holdSending, listHolds, releaseHold, toIso } from "@countersign/ledger";
import { actions } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { actorOption, connectionOption, integerOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `hold`, `holds` and `release`. */
export function addHold(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "hold",
    description:
      "Send nothing of a tenant, or of one connection or action of it. Planning goes on, calls under way end.",
    example: "countersign hold --tenant acme --action SEND --who u-17 --why 'wrong template in use' --minutes 60",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose operations")
        .option("--connection <id>", "only on this connection")
        .option("--action <action>", "only this one")
        .requiredOption("--who <id>", "opaque id of who holds")
        .requiredOption("--why <text>", "kept for ever; no names or addresses")
        .option("--minutes <n>", "end by itself after this many"),
    choices: { "--action": actions },
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      action: z.enum(actions, `must be one of ${actions.join(", ")}`).optional(),
      who: actorOption,
      why: z.string(),
      minutes: integerOption(1, 525_600).optional(),
    }),
    run: async ({ tenant, connection, action, who, why, minutes }, io) => {
      const holdId = await withLedger(io, (ledger) =>
        holdSending(ledger, {
          tenantId: tenant,
          by: who,
          reason: why,
          ...(connection === undefined ? {} : { connectionId: connection }),
          ...(action === undefined ? {} : { action }),
          ...(minutes === undefined ? {} : { forMs: minutes * 60_000 }),
        }),
      );
      return {
        value: { holdId },
        text: `Held. Release it with: countersign release ${holdId} --tenant ${tenant} --who <id>`,
      };
    },
  });
  addHolds(program, tools);
  addRelease(program, tools);
}

function addHolds(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "holds",
    description: "Holds in force.",
    example: "countersign holds --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose holds"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const holds = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listHolds(ledger, tenant);
      });
      const rows = holds.map((each) => [
        each.holdId,
        each.connectionId ?? "all",
        each.action ?? "all",
        each.heldBy,
        each.reason,
        each.endsAt === null ? "" : toIso(each.endsAt),
      ]);
      return {
        value: holds,
        text: table(["hold", "connection", "action", "by", "why", "ends"], rows, "nothing is held"),
      };
    },
  });
}

function addRelease(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "release",
    description: "End a hold. What waited is sent gradually.",
    example: "countersign release 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme --who u-17",
    options: (command) =>
      command
        .argument("<hold>", "its id")
        .requiredOption("--tenant <id>", "whose hold")
        .requiredOption("--who <id>", "opaque id of who releases"),
    schema: z.object({ hold: z.uuid("must be the id of a hold"), tenant: tenantOption, who: actorOption }),
    run: async ({ hold, tenant, who }, io) => {
      await withLedger(io, (ledger) => releaseHold(ledger, tenant, hold, who));
      return { value: { holdId: hold, released: true }, text: "Released." };
    },
  });
}
