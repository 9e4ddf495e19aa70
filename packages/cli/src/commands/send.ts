import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { UsageError } from "../errors.js";
import {
  actorOption,
  connectionOption,
  integerOption,
  intentOption,
  operationOption,
  tenantOption,
} from "../options.js";
import { planSend } from "../plan-send.js";
import { parseSigners } from "../signer-option.js";
import { withLedger } from "../with-ledger.js";
import { planResult } from "./plan-result.js";

const schema = z.object({
  tenant: tenantOption,
  intent: intentOption,
  file: z.string().min(1, "must name a PDF"),
  signer: z.array(z.string()).min(1, "must be given at least once"),
  connection: connectionOption.optional(),
  expiresInDays: integerOption(1, 365).optional(),
  supersedes: operationOption.optional(),
  mode: z.enum(["void-first", "send-first"], "must be void-first or send-first").default("void-first"),
  requestedBy: actorOption.optional(),
  approvedBy: actorOption.optional(),
  wait: z.boolean().default(false),
  waitSeconds: integerOption(1, 3_600),
});

/** `send`. */
export function addSend(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "send",
    description: "Record a signature request. It is sent once; the same intent again is the same operation.",
    example:
      'countersign send --tenant acme --intent contract-42-r1 --file contract.pdf --signer "role=customer,email=anna@example.com,order=1,name=Anna Example" --wait',
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose request")
        .requiredOption("--intent <key>", "your own name for this intent, one per approval")
        .requiredOption("--file <pdf>", "the document")
        .requiredOption("--signer <role=…,email=…,order=…,name=…>", "a signer; may be repeated", collect)
        .option("--connection <id>", "which connection (the only or default one when left out)")
        .option("--expires-in-days <n>", "when the request expires")
        .option("--supersedes <operation>", "the operation that this one replaces")
        .option("--mode <mode>", "void-first (the default) or send-first, with --supersedes")
        .option("--requested-by <id>", "opaque id of who asked")
        .option("--approved-by <id>", "opaque id of who approved")
        .option("--wait", "wait until it is resolved; exit 0 only when it is CONFIRMED")
        .option("--wait-seconds <n>", "how long --wait waits", "60"),
    schema,
    run: async (options, io) => {
      const { tenant, expiresInDays, supersedes, mode } = options;
      const request = {
        tenantId: tenant,
        intentKey: options.intent,
        files: [await pdf(options.file)],
        payload: {
          signers: parseSigners(options.signer),
          ...(expiresInDays === undefined ? {} : { expiresInDays }),
        },
        ...(options.connection === undefined ? {} : { connectionId: options.connection }),
        ...(supersedes === undefined ? {} : { supersedes: { operationId: supersedes, mode } }),
        ...(options.requestedBy === undefined ? {} : { requestedBy: options.requestedBy }),
        ...(options.approvedBy === undefined ? {} : { approvedBy: options.approvedBy }),
      };
      return await withLedger(io, async (ledger) => {
        const outcome = await planSend(ledger, providerByName, request);
        return await planResult(ledger, tenant, outcome, options.wait ? options.waitSeconds * 1_000 : undefined);
      });
    },
  });
}

async function pdf(path: string): Promise<{ bytes: Uint8Array; fileName: string }> {
  try {
    return { bytes: await readFile(path), fileName: basename(path) };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw new UsageError(`--file can't be read (${code}); check the path`, { cause });
  }
}
