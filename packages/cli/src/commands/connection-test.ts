import { openConnection } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { RefusedError, UnreachableError } from "../errors.js";
import { harmlessRead, isUnreachable, remedyFor } from "../harmless-read.js";
import { connectionOption, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

/** `connection test`: the doctor's read, for one connection; also while it is paused, since a person asks. */
export function addConnectionTest(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "test",
    description:
      "Ask the provider for a request that nobody has made: is it there, and does it take the key? Only reads. " +
      "Also asks while the connection is paused.",
    example: "countersign connection test --tenant acme --connection main",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose connection")
        .option("--connection <id>", "which one (the only or default one when left out)"),
    schema: z.object({ tenant: tenantOption, connection: connectionOption.optional() }),
    run: async ({ tenant, connection }, io) =>
      await withLedger(io, async (ledger) => {
        const opened = await openConnection(ledger, tenant, await chooseConnection(ledger, tenant, connection));
        const provider = providerByName(opened.provider);
        if (provider === undefined) {
          throw new RefusedError("provider-unknown", "this build has no adapter for the connection's provider");
        }
        const reading = await harmlessRead(ledger, provider, opened);
        if (reading.kind === "not-asked") {
          throw new RefusedError(reading.cause, notAsked[reading.cause]);
        }
        if (reading.kind === "failed") {
          const line = `the read failed (${reading.cause}, ${reading.ms} ms): ${remedyFor(opened, reading.cause)}`;
          if (isUnreachable(reading.cause)) throw new UnreachableError("provider-unreachable", line);
          throw new RefusedError("read-failed", line);
        }
        const { connectionId } = opened;
        const noted =
          reading.strangers === 0 ? "" : ` It showed ${reading.strangers} requests that were not asked for.`;
        return {
          value: { tenantId: tenant, connectionId, ...reading },
          text: `Connection ${connectionId} answers and takes the key (by ${reading.by}, ${reading.ms} ms).${noted}`,
        };
      }),
  });
}

/** Why a provider was not asked. */
export const notAsked = {
  "no-lookup": "this connection offers no lookup: there is nothing to read without writing",
  "no-permit":
    "the connection's own rate leaves no room for a read now: try again, or raise it with countersign connection rate",
} as const;
