import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { exitCodes, UsageError } from "../errors.js";
import { actorOption, connectionOption, integerOption, tenantOption } from "../options.js";
import { defaultSandboxSigner, type VerifyResult, type VerifyStep, verifyConnection } from "../verify-connection.js";
import { withLedger } from "../with-ledger.js";

const whatItDoes =
  "connection verify makes one real request at the provider: tagged sandbox, a one-page PDF, mailed to the sandbox signer, " +
  "found again by our metadata, and withdrawn at the end";

/** `connection verify`. */
export function addConnectionVerify(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "verify",
    description: "Exercise the connection's lookup once, so that an empty answer may count as proof of absence.",
    example: "countersign connection verify --tenant acme --connection main --sandbox-send",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose connection")
        .option("--connection <id>", "which one (the only or default one when left out)")
        .option("--sandbox-send", "yes, make the request")
        .option("--sandbox-signer <address>", `who is mailed (${defaultSandboxSigner})`)
        .option("--lag-timeout-ms <n>", "how long the request may take to show up in the lookup", "60000")
        .option("--by <id>", "who vouches, for the record", "connection-verify"),
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      sandboxSend: z.boolean().default(false),
      sandboxSigner: z.email("must be one address").optional(),
      lagTimeoutMs: integerOption(1, 3_600_000),
      by: actorOption,
    }),
    run: async ({ tenant, connection, sandboxSend, sandboxSigner, lagTimeoutMs, by }, io) => {
      if (!sandboxSend) throw new UsageError(`--sandbox-send is needed: ${whatItDoes}`);
      const result = await withLedger(io, async (ledger) =>
        verifyConnection({
          ledger,
          providerByName,
          tenantId: tenant,
          connectionId: await chooseConnection(ledger, tenant, connection),
          lagTimeoutMs,
          by,
          ...(sandboxSigner === undefined ? {} : { signerEmail: sandboxSigner }),
        }),
      );
      const good = result.verified && !result.leftBehind;
      return { value: result, text: text(result), exitCode: good ? exitCodes.done : exitCodes.refused };
    },
  });
}

const line = ({ step, ok, ms, note }: VerifyStep): string => `${ok ? "ok    " : "FAILED"} ${step} (${ms} ms): ${note}`;

function text(result: VerifyResult): string {
  const lines = result.steps.map(line);
  lines.push(
    result.verified
      ? `Verified: the lookup showed the request ${result.lagMs} ms after the answer. Keep LOOKUP_LAG_MS above that.`
      : `Not verified (${result.note}): lookups here may confirm, but an empty one proves nothing.`,
  );
  if (result.leftBehind) {
    lines.push(
      `The request could not be withdrawn: do it by hand, its metadata operation_id is ${result.operationId}.`,
    );
  }
  return lines.join("\n");
}
