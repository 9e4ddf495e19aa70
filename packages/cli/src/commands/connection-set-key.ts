import { setCredential } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { connectionOption, secretFromStdin, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

/** `connection set-key`: an expired or rotated API key is replaced; calls use it within seconds. */
export function addConnectionSetKey(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "set-key",
    description:
      "Replace a connection's API key (expired, rotated); read from standard input. A pause stays: resume it.",
    example: 'printf %s "$WESIGN_KEY" | countersign connection set-key --tenant acme --connection main --api-key-stdin',
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose connection")
        .option("--connection <id>", "which one (the only or default one when left out)")
        .requiredOption("--api-key-stdin", "read the API key from standard input"),
    schema: z.object({ tenant: tenantOption, connection: connectionOption.optional(), apiKeyStdin: z.literal(true) }),
    run: async ({ tenant, connection }, io) => {
      const credential = await secretFromStdin(io, "--api-key-stdin");
      const connectionId = await withLedger(io, async (ledger) => {
        const id = await chooseConnection(ledger, tenant, connection);
        await setCredential(ledger, tenant, id, credential);
        return id;
      });
      return {
        value: { tenantId: tenant, connectionId, keyReplaced: true },
        text: `Connection ${connectionId} has a new API key. If it is paused: countersign connection resume --tenant ${tenant} --connection ${connectionId} --who <id>`,
      };
    },
  });
}
