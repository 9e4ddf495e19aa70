import { commonConfig, loadConfig } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { type Examined, examine } from "../doctor/examine.js";
import { type Finding, type FindingStatus, findingStatuses } from "../doctor/finding.js";
import { type ExitCode, exitCodes } from "../errors.js";
import { tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

const shape = {
  DATABASE_URL: commonConfig.DATABASE_URL,
  REDIS_URL: commonConfig.REDIS_URL,
} as const;

/** `doctor`. */
export function addDoctor(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "doctor",
    description:
      "Look whether everything works, and say what to do about what does not: database, migrations, queues, clocks, keys, " +
      "providers (one read each), webhook endpoints, workers, ticket owners. Changes nothing.",
    example: "countersign doctor --tenant acme",
    exits: "Exit codes: 0 nothing fails, 1 something fails, 2 usage, 3 the database can't be reached.",
    options: (command) =>
      command
        .option("--tenant <id>", "only this tenant's keys, connections and endpoints (every tenant's when left out)")
        .option("--offline", "ask no provider"),
    schema: z.object({ tenant: tenantOption.optional(), offline: z.boolean().default(false) }),
    run: async ({ tenant, offline }, io) => {
      const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = loadConfig(shape, io.env, { name: "countersign" });
      const examined = await withLedger(io, (ledger) =>
        examine({ io, ledger, databaseUrl, redisUrl, tenantId: tenant, offline }),
      );
      const counts = countsOf(examined.findings);
      return {
        value: { healthy: counts.fail === 0, counts, findings: examined.findings },
        text: text(examined.findings, counts),
        exitCode: exitCodeOf(examined),
      };
    },
  });
}

function exitCodeOf({ reachable, findings }: Examined): ExitCode {
  if (!reachable) return exitCodes.unreachable;
  return findings.some(({ status }) => status === "fail") ? exitCodes.refused : exitCodes.done;
}

type Counts = Record<FindingStatus, number>;

function countsOf(findings: readonly Finding[]): Counts {
  const counts: Counts = { ok: 0, warn: 0, fail: 0, skip: 0 };
  for (const { status } of findings) counts[status] += 1;
  return counts;
}

function text(findings: readonly Finding[], counts: Counts): string {
  const lines = findings.flatMap(({ status, check, subject, what, remedy }) => [
    `${status.padEnd(5)} ${check}${subject === undefined ? "" : ` ${subject}`}: ${what}`,
    ...(remedy === undefined ? [] : [`      → ${remedy}`]),
  ]);
  return [...lines, "", findingStatuses.map((status) => `${counts[status]} ${status}`).join(", ")].join("\n");
}
