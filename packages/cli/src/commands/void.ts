import { getOperation, NotFoundError } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { actorOption, integerOption, intentOption, operationOption, tenantOption } from "../options.js";
import { planVoid } from "../plan-send.js";
import { withLedger } from "../with-ledger.js";
import { planResult } from "./plan-result.js";

/** `void`. */
export function addVoid(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "void",
    description: "Record the void of a request. One that was never sent is retired; an open one is waited for.",
    example: "countersign void 0190b7e2-0000-7000-8000-000000000001 --tenant acme --intent contract-42-void",
    options: (command) =>
      command
        .argument("<operation>", "the SEND to void")
        .requiredOption("--tenant <id>", "whose operation")
        .requiredOption("--intent <key>", "your own name for this intent")
        .option("--requested-by <id>", "opaque id of who asked")
        .option("--approved-by <id>", "opaque id of who approved")
        .option("--wait", "wait until it is resolved; exit 0 only when it is CONFIRMED")
        .option("--wait-seconds <n>", "how long --wait waits", "60"),
    schema: z.object({
      operation: operationOption,
      tenant: tenantOption,
      intent: intentOption,
      requestedBy: actorOption.optional(),
      approvedBy: actorOption.optional(),
      wait: z.boolean().default(false),
      waitSeconds: integerOption(1, 3_600),
    }),
    run: async (options, io) =>
      await withLedger(io, async (ledger) => {
        const { tenant, operation } = options;
        const target = await getOperation(ledger, tenant, operation);
        if (target === undefined) throw new NotFoundError("operation");
        const outcome = await planVoid(ledger, providerByName, {
          tenantId: tenant,
          intentKey: options.intent,
          operationId: operation,
          connectionId: target.connectionId,
          ...(options.requestedBy === undefined ? {} : { requestedBy: options.requestedBy }),
          ...(options.approvedBy === undefined ? {} : { approvedBy: options.approvedBy }),
        });
        return await planResult(ledger, tenant, outcome, options.wait ? options.waitSeconds * 1_000 : undefined);
      }),
  });
}
