import { createConnection, listConnections, setRate } from "@countersign/ledger";
import { providerByName, providers } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { connectionOption, secretFromStdin, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";
import { addConnectionPause, addConnectionResume } from "./connection-pause.js";
import { addConnectionSetKey } from "./connection-set-key.js";
import { addConnectionTest } from "./connection-test.js";
import { addConnectionVerify } from "./connection-verify.js";

/** `connection create|verify|set-key|test|pause|resume|rate|list`. */
export function addConnection(program: Command, tools: CommandTools): void {
  const connection = program
    .command("connection")
    .alias("connections")
    .description("Connections to signature providers.");
  addCreate(connection, tools);
  addConnectionVerify(connection, tools);
  addConnectionSetKey(connection, tools);
  addConnectionTest(connection, tools);
  addConnectionPause(connection, tools);
  addConnectionResume(connection, tools);
  addRate(connection, tools);
  addList(connection, tools);
}

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const baseUrl = z
  .string()
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), "must be an https:// URL")
  .refine((text) => {
    const { username, password, search, hash } = new URL(text);
    return `${username}${password}${search}${hash}` === "";
  }, "must carry no credentials, query or fragment");

const createSchema = z
  .object({
    tenant: tenantOption,
    id: connectionOption.default("main"),
    provider: z
      .string()
      .refine(
        (name) => providerByName(name) !== undefined,
        `must be one of ${providers.all.map(({ name }) => name).join(", ")}`,
      ),
    baseUrl,
    allowHttp: z.boolean().default(false),
    apiKeyStdin: z.literal(true),
    default: z.boolean().default(false),
    metadataLookup: z.boolean(),
  })
  .refine(
    ({ baseUrl: url, allowHttp }) => allowHttp || url.startsWith("https:") || loopback.test(new URL(url).hostname),
    {
      path: ["baseUrl"],
      message: "would carry the API key unencrypted: use https://, or add --allow-http inside a network you trust",
    },
  );

function addCreate(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "create",
    description: "Store a connection; its API key is read from standard input and stored encrypted.",
    example:
      'printf %s "$WESIGN_KEY" | countersign connection create --tenant acme --provider wesign --base-url https://api.wesign.now --api-key-stdin --default',
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose connection")
        .option("--id <id>", "its name (main)")
        .requiredOption("--provider <name>", "which adapter: wesign")
        .requiredOption("--base-url <url>", "the API's origin")
        .option("--allow-http", "allow http:// to another machine")
        .requiredOption("--api-key-stdin", "read the API key from standard input")
        .option("--default", "use it where a request names no connection")
        .option("--no-metadata-lookup", "never look requests up by our metadata here"),
    schema: createSchema,
    run: async (options, io) => {
      const credential = await secretFromStdin(io, "--api-key-stdin");
      const { tenant: tenantId, id: connectionId, provider, baseUrl: url, metadataLookup } = options;
      const stored = { tenantId, connectionId, provider, baseUrl: url, isDefault: options.default, metadataLookup };
      await withLedger(io, (ledger) => createConnection(ledger, { ...stored, credential }));
      const next = metadataLookup
        ? ` Until countersign connection verify has run, its lookups may confirm but not prove absence.`
        : "";
      return { value: stored, text: `Connection ${connectionId} is created.${next}` };
    },
  });
}

function addRate(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "rate",
    description:
      "Calls per second of a connection, submissions and lookups of all workers together; none for no limit of ours.",
    example: "countersign connection rate 5 --tenant acme --connection main",
    options: (command) =>
      command
        .argument("<per-second>", "calls per second, or none")
        .requiredOption("--tenant <id>", "whose connection")
        .option("--connection <id>", "which one (the only or default one when left out)"),
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      "per-second": z
        .string()
        .regex(/^(none|\d{1,5}(\.\d{1,3})?)$/, "must be a number of calls per second, or none")
        .transform((text) => (text === "none" ? null : Number(text)))
        .refine((rate) => rate === null || rate > 0, "must be more than 0, or none"),
    }),
    run: async ({ tenant, connection, "per-second": ratePerSecond }, io) => {
      const connectionId = await withLedger(io, async (ledger) => {
        const id = await chooseConnection(ledger, tenant, connection);
        await setRate(ledger, tenant, id, ratePerSecond);
        return id;
      });
      const text = ratePerSecond === null ? "has no limit of ours" : `makes at most ${ratePerSecond} calls per second`;
      return { value: { tenantId: tenant, connectionId, ratePerSecond }, text: `Connection ${connectionId} ${text}.` };
    },
  });
}

function addList(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "list",
    description: "The tenant's connections.",
    example: "countersign connection list --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose connections"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const connections = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listConnections(ledger, tenant);
      });
      const rows = connections.map((each) => [
        each.connectionId,
        each.provider,
        each.baseUrl,
        each.isDefault ? "yes" : "",
        each.metadataLookup ? (each.lookupVerifiedAt ?? "not verified") : "off",
        each.ratePerSecond === null ? "" : String(each.ratePerSecond),
        each.circuitOpen ? "provider down" : each.pausedForMs > 0 ? (each.pauseReason ?? "paused") : "",
      ]);
      return {
        value: connections,
        text: table(
          ["connection", "provider", "base URL", "default", "lookup", "calls per s", "paused"],
          rows,
          "no connections",
        ),
      };
    },
  });
}
