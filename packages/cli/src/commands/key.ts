import { apiScopes, createApiKey, producerScopes } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

/** `key create`. */
export function addKey(program: Command, tools: CommandTools): void {
  const key = program.command("key").description("API keys of producers.");
  define(key, tools, {
    name: "create",
    description: "Make an API key and print it. It is stored as a digest only: this is the one time it is shown.",
    example: "countersign key create --tenant acme --name billing-service --scope operations:write",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose key")
        .requiredOption("--name <name>", "what it is for")
        .option(
          "--scope <scope>",
          `${apiScopes.join(", ")}; may be repeated (${producerScopes.join(", ")} when left out)`,
          collect,
        ),
    schema: z.object({
      tenant: tenantOption,
      name: z.string().trim().min(1, "must not be empty").max(200, "must be at most 200 characters"),
      scope: z.array(z.enum(apiScopes, `must be one of ${apiScopes.join(", ")}`)).optional(),
    }),
    run: async ({ tenant, name, scope }, io) => {
      const scopes = scope ?? [...producerScopes];
      const made = await withLedger(io, (ledger) => createApiKey(ledger, tenant, name, scopes));
      return { value: { tenantId: tenant, ...made, scopes }, text: made.key };
    },
  });
}
