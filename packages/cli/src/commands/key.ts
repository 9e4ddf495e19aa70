import { apiScopes, createApiKey, listApiKeys, producerScopes, revokeApiKey, toIso } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `key create|list|revoke`. */
export function addKey(program: Command, tools: CommandTools): void {
  const key = program.command("key").alias("keys").description("API keys of producers.");
  addList(key, tools);
  addRevoke(key, tools);
  define(key, tools, {
    name: "create",
    description: "Make an API key and print it. It is stored as a digest only: this is the one time it is shown.",
    example: "countersign key create --tenant acme --name billing-service --scope operations:write",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose key")
        .requiredOption("--name <name>", "what it is for")
        .option("--scope <scope>", `may be repeated (${producerScopes.join(", ")} when left out)`, collect),
    choices: { "--scope": apiScopes },
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

function addList(key: Command, tools: CommandTools): void {
  define(key, tools, {
    name: "list",
    description: "A tenant's API keys, the revoked ones too; never the keys themselves.",
    example: "countersign keys list --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose keys"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const found = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listApiKeys(ledger, tenant);
      });
      const list = found.map((each) => ({
        ...each,
        createdAt: toIso(each.createdAt),
        revokedAt: each.revokedAt === null ? null : toIso(each.revokedAt),
      }));
      const rows = list.map((each) => [
        each.keyId,
        each.name,
        each.scopes.join(", "),
        each.createdAt,
        each.revokedAt ?? "-",
      ]);
      return { value: list, text: table(["key", "name", "scopes", "since", "revoked"], rows, "no API keys") };
    },
  });
}

function addRevoke(key: Command, tools: CommandTools): void {
  define(key, tools, {
    name: "revoke",
    description: "End an API key, within seconds also for who is using it. What was planned with it stays planned.",
    example: "countersign keys revoke 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme",
    options: (command) => command.argument("<key>", "its id").requiredOption("--tenant <id>", "whose key"),
    schema: z.object({
      key: z.uuid("must be the id that `keys list` shows, never the key itself"),
      tenant: tenantOption,
    }),
    run: async ({ key: keyId, tenant }, io) => {
      const revoked = await withLedger(io, (ledger) => revokeApiKey(ledger, tenant, keyId));
      return { value: { keyId, revoked }, text: revoked ? "Revoked." : "It was revoked before." };
    },
  });
}
