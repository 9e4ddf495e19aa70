import { createWebhookEndpoint, openConnection } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { UsageError } from "../errors.js";
import { connectionOption, secretFromStdin, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

/** `webhook-endpoint create`. */
export function addWebhookEndpoint(program: Command, tools: CommandTools): void {
  const endpoint = program.command("webhook-endpoint").description("Where a provider's webhooks come in.");
  define(endpoint, tools, {
    name: "create",
    description: "Make a webhook endpoint and print its URL path, which is unguessable: treat it like a secret.",
    example: 'printf %s "$WHSEC" | countersign webhook-endpoint create --tenant acme --scheme elchi --secret-stdin',
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose endpoint")
        .option("--connection <id>", "which connection (the only or default one when left out)")
        .requiredOption("--scheme <scheme>", "how deliveries are signed: elchi")
        .requiredOption("--secret-stdin", "read the signing secret from standard input, whsec_ included"),
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      scheme: z.string(),
      secretStdin: z.literal(true),
    }),
    run: async ({ tenant, connection, scheme }, io) => {
      const secret = await secretFromStdin(io, "--secret-stdin");
      const made = await withLedger(io, async (ledger) => {
        const connectionId = await chooseConnection(ledger, tenant, connection);
        const { provider } = await openConnection(ledger, tenant, connectionId);
        const schemes = Object.keys(providerByName(provider)?.webhooks ?? {});
        if (!schemes.includes(scheme)) {
          throw new UsageError(`--scheme is not one of provider ${provider}; use ${schemes.join(" or ")}`);
        }
        const { endpointId, path } = await createWebhookEndpoint(ledger, {
          tenantId: tenant,
          connectionId,
          scheme,
          secret,
        });
        return { endpointId, path, connectionId };
      });
      return { value: { tenantId: tenant, scheme, ...made }, text: made.path };
    },
  });
}
