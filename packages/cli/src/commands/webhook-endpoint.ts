import {
  createWebhookEndpoint,
  type EndpointView,
  listEndpoints,
  NotFoundError,
  openConnection,
  retireSecret,
  rotateSecret,
  setEndpointDisabled,
  toIso,
} from "@countersign/ledger";
import { providerByName, webhookScheme, webhookSchemes } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { UsageError } from "../errors.js";
import { connectionOption, durationOption, endpointOption, secretFromStdin, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

const gzipRules = ["content", "wire"] as const;

/** `webhook-endpoint create|list|rotate|retire|disable|enable`. */
export function addWebhookEndpoint(program: Command, tools: CommandTools): void {
  const endpoint = program
    .command("webhook-endpoint")
    .alias("webhook-endpoints")
    .description("Where a provider's webhooks come in.");
  addCreate(endpoint, tools);
  addList(endpoint, tools);
  addRotate(endpoint, tools);
  addRetire(endpoint, tools);
  addSwitch(endpoint, tools, true);
  addSwitch(endpoint, tools, false);
}

function addCreate(endpoint: Command, tools: CommandTools): void {
  define(endpoint, tools, {
    name: "create",
    description: "Make a webhook endpoint and print its URL path, which is unguessable: treat it like a secret.",
    example: 'printf %s "$WHSEC" | countersign webhook-endpoint create --tenant acme --scheme elchi --secret-stdin',
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose endpoint")
        .option("--connection <id>", "which connection (the only or default one when left out)")
        .requiredOption("--scheme <scheme>", "how deliveries are signed")
        .requiredOption("--secret-stdin", "read the signing secret from standard input, whsec_ included")
        .option("--gzip <what>", "take compressed deliveries; what is signed: content (unpacked) or wire (packed)"),
    choices: { "--scheme": [...webhookSchemes.keys()], "--gzip": gzipRules },
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      scheme: z.string(),
      secretStdin: z.literal(true),
      gzip: z.enum(gzipRules, `must be ${gzipRules.join(" or ")}`).optional(),
    }),
    run: async ({ tenant, connection, scheme, gzip }, io) => {
      const secret = await secretFromStdin(io, "--secret-stdin");
      const made = await withLedger(io, async (ledger) => {
        const connectionId = await chooseConnection(ledger, tenant, connection);
        const { provider } = await openConnection(ledger, tenant, connectionId);
        const schemes = Object.keys(providerByName(provider)?.webhooks ?? {});
        if (!schemes.includes(scheme)) {
          throw new UsageError(`--scheme is not one of provider ${provider}; use ${schemes.join(", ")}`);
        }
        checkSecret(scheme, secret);
        const { endpointId, path, secretId } = await createWebhookEndpoint(ledger, {
          tenantId: tenant,
          connectionId,
          scheme,
          secret,
          ...(gzip === undefined ? {} : { gzip }),
        });
        return { endpointId, path, secretId, connectionId };
      });
      return { value: { tenantId: tenant, scheme, ...made }, text: made.path };
    },
  });
}

/** A secret with which nothing could ever verify is refused while somebody looks. Throws UsageError. */
function checkSecret(scheme: string, secret: string): void {
  const problem = webhookScheme(scheme)?.checkSecret(secret);
  if (problem !== undefined) throw new UsageError(`--secret-stdin ${problem}`);
}

const lastVerified = (at: string | null): string => (at === null ? "never" : toIso(at));

function addList(endpoint: Command, tools: CommandTools): void {
  define(endpoint, tools, {
    name: "list",
    description:
      "Endpoints of a tenant with their secrets' ids: which secret verified last, which is retired and when.",
    example: "countersign webhook-endpoint list --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose endpoints"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listEndpoints(ledger, tenant);
      });
      const rows = list.map((each) => [
        each.endpointId,
        each.connectionId,
        each.scheme,
        each.disabledAt === null ? "on" : "disabled",
        lastVerified(each.lastVerifiedAt),
        secretsOf(each),
      ]);
      const head = ["endpoint", "connection", "scheme", "state", "last verified", "secrets"];
      return { value: list, text: table(head, rows, "no webhook endpoints") };
    },
  });
}

const secretsOf = ({ secrets }: EndpointView): string =>
  secrets
    .map(({ secretId, active, retiredAt, lastVerifiedAt }) => {
      const life = retiredAt === null ? "active" : active ? `active until ${toIso(retiredAt)}` : "retired";
      return `${secretId}\n  ${life}, last verified ${lastVerified(lastVerifiedAt)}`;
    })
    .join("\n");

function addRotate(endpoint: Command, tools: CommandTools): void {
  define(endpoint, tools, {
    name: "rotate",
    description:
      "Add a secret, read from standard input. Older ones go on verifying for --overlap, so that nothing is lost while " +
      "the sender still signs with them; `webhook-endpoint list` shows which one verified last.",
    example: 'printf %s "$NEW" | countersign webhook-endpoint rotate we_… --tenant acme --secret-stdin --overlap 24h',
    options: (command) =>
      command
        .argument("<endpoint>", "its id")
        .requiredOption("--tenant <id>", "whose endpoint")
        .requiredOption("--secret-stdin", "read the new signing secret from standard input")
        .option("--overlap <duration>", "how long older secrets go on verifying, at most 90d", "24h")
        .option("--keep-old", "until each is retired by name, instead of --overlap"),
    schema: z.object({
      endpoint: endpointOption,
      tenant: tenantOption,
      secretStdin: z.literal(true),
      overlap: durationOption.refine((ms) => ms <= 90 * 86_400_000, "must be at most 90d; use --keep-old"),
      keepOld: z.boolean().default(false),
    }),
    run: async ({ endpoint: endpointId, tenant, overlap, keepOld }, io) => {
      const secret = await secretFromStdin(io, "--secret-stdin");
      const { secretId, view } = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        const found = (await listEndpoints(ledger, tenant)).find((each) => each.endpointId === endpointId);
        if (found === undefined) throw new NotFoundError("webhook endpoint");
        checkSecret(found.scheme, secret);
        const rotated = await rotateSecret(ledger, {
          tenantId: tenant,
          endpointId,
          secret,
          ...(keepOld ? {} : { overlapMs: overlap }),
        });
        const after = (await listEndpoints(ledger, tenant)).find((each) => each.endpointId === endpointId);
        return { secretId: rotated.secretId, view: after ?? found };
      });
      const older = view.secrets.filter((each) => each.active && each.secretId !== secretId);
      const lines = [
        `Secret ${secretId} is active; an ingress takes it within seconds. Give it to the sender now.`,
        ...older.map(
          (each) =>
            `Secret ${each.secretId} ${each.retiredAt === null ? "stays until it is retired by name" : `verifies until ${toIso(each.retiredAt)}`}; it verified last: ${lastVerified(each.lastVerifiedAt)}.`,
        ),
        `See which one the sender uses: countersign webhook-endpoint list --tenant ${tenant}`,
      ];
      return { value: { endpointId, secretId, secrets: view.secrets }, text: lines.join("\n") };
    },
  });
}

function addRetire(endpoint: Command, tools: CommandTools): void {
  define(endpoint, tools, {
    name: "retire",
    description: "Retire a secret at once. The last active one stays: disable the endpoint instead.",
    example: "countersign webhook-endpoint retire we_… --tenant acme --secret 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11",
    options: (command) =>
      command
        .argument("<endpoint>", "its id")
        .requiredOption("--tenant <id>", "whose endpoint")
        .requiredOption("--secret <id>", "which secret: its id, as `webhook-endpoint list` prints it"),
    schema: z.object({
      endpoint: endpointOption,
      tenant: tenantOption,
      secret: z.uuid("must be the id of a secret, never the secret itself"),
    }),
    run: async ({ endpoint: endpointId, tenant, secret: secretId }, io) => {
      await withLedger(io, (ledger) => retireSecret(ledger, { tenantId: tenant, endpointId, secretId }));
      return { value: { endpointId, secretId, retired: true }, text: "Retired: it verifies nothing any more." };
    },
  });
}

function addSwitch(endpoint: Command, tools: CommandTools, disabled: boolean): void {
  const name = disabled ? "disable" : "enable";
  define(endpoint, tools, {
    name,
    description: disabled
      ? "Switch an endpoint off: its deliveries are answered 404, and its sender may give up on them."
      : "Switch a disabled endpoint on again.",
    example: `countersign webhook-endpoint ${name} we_… --tenant acme`,
    options: (command) => command.argument("<endpoint>", "its id").requiredOption("--tenant <id>", "whose endpoint"),
    schema: z.object({ endpoint: endpointOption, tenant: tenantOption }),
    run: async ({ endpoint: endpointId, tenant }, io) => {
      await withLedger(io, (ledger) => setEndpointDisabled(ledger, { tenantId: tenant, endpointId, disabled }));
      return { value: { endpointId, disabled }, text: `Endpoint ${endpointId} is ${disabled ? "disabled" : "on"}.` };
    },
  });
}
