import { type Retained, runRetention } from "@countersign/ledger";
import { loadConfig, windows } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { integerOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

const shape = {
  PAYLOAD_DAYS: windows.PAYLOAD_DAYS,
  DOCUMENT_DAYS: windows.DOCUMENT_DAYS,
  WEBHOOK_BODY_DAYS: windows.WEBHOOK_BODY_DAYS,
} as const;

const days = integerOption(1, 36_500);

/** `retention run`. */
export function addRetention(program: Command, tools: CommandTools): void {
  const retention = program.command("retention").description("Erasing what has outlived its days.");
  define(retention, tools, {
    name: "run",
    description:
      "Erase payloads, documents and webhook bodies that have outlived their days, as the reconcile worker does every " +
      "hour. What is not final, open, needed or under a legal hold stays, and is counted by reason.",
    example: "countersign retention run --tenant acme --dry-run",
    options: (command) =>
      command
        .option("--tenant <id>", "only this tenant's")
        .option("--payload-days <n>", "days after the end of an operation; PAYLOAD_DAYS when left out")
        .option("--document-days <n>", "days after the last upload of a document; DOCUMENT_DAYS when left out")
        .option("--body-days <n>", "days after a webhook came in; WEBHOOK_BODY_DAYS when left out")
        .option("--dry-run", "count what would go and what would stay, and erase nothing"),
    schema: z.object({
      tenant: tenantOption.optional(),
      payloadDays: days.optional(),
      documentDays: days.optional(),
      bodyDays: days.optional(),
      dryRun: z.boolean().default(false),
    }),
    run: async ({ tenant, payloadDays, documentDays, bodyDays, dryRun }, io) => {
      const config = loadConfig(shape, io.env, { name: "countersign" });
      const tenants = await withLedger(io, async (ledger) => {
        if (tenant !== undefined) await ledger.tenantKey(tenant);
        return await runRetention(ledger, {
          payloadDays: payloadDays ?? config.PAYLOAD_DAYS,
          documentDays: documentDays ?? config.DOCUMENT_DAYS,
          bodyDays: bodyDays ?? config.WEBHOOK_BODY_DAYS,
          dryRun,
          ...(tenant === undefined ? {} : { tenantId: tenant }),
        });
      });
      return { value: { dryRun, tenants }, text: told(tenants, dryRun) };
    },
  });
}

function told(tenants: readonly Retained[], dryRun: boolean): string {
  const rows = tenants.map(({ tenantId, erased, stayed }) => [
    tenantId,
    ...[erased.payloads, erased.documents, erased.bodies].map(String),
    Object.entries(stayed)
      .map(([reason, count]) => `${count} ${reason}`)
      .join("\n"),
  ]);
  const shown = table(["tenant", "payloads", "documents", "bodies", "old, but stays"], rows, "no tenants");
  return dryRun ? `Nothing was erased; this would go:\n${shown}` : shown;
}
