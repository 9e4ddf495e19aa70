import { addOperator, listOperators, operatorRoles, revokeOperator, toIso } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

/** `console-access add`, `list`, `revoke`. */
export function addConsoleAccess(program: Command, tools: CommandTools): void {
  const access = program.command("console-access").description("Who may log in to the console.");
  define(access, tools, {
    name: "add",
    description: "Make a token and print it. It is stored as a digest only: this is the one time it is shown.",
    example: "countersign console-access add --name alice --role operator",
    options: (command) =>
      command
        .requiredOption("--name <id>", "what decisions and the log of actions call them")
        .requiredOption("--role <role>", "viewer looks, operator also decides")
        .option("--tenant <id>", "only this tenant; may be repeated (every tenant when left out)", collect),
    choices: { "--role": operatorRoles },
    schema: z.object({
      name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be 1 to 63 of letters, digits, '.', '_', '-'"),
      role: z.enum(operatorRoles, `must be one of ${operatorRoles.join(", ")}`),
      tenant: z.array(tenantOption).optional(),
    }),
    run: async ({ name, role, tenant }, io) => {
      const made = await withLedger(io, (ledger) =>
        addOperator(ledger, { name, role, ...(tenant === undefined ? {} : { tenants: tenant }) }),
      );
      return { value: { ...made, name, role, tenants: tenant ?? null }, text: made.token };
    },
  });
  define(access, tools, {
    name: "list",
    description: "Who was let in, the revoked ones too; never their tokens.",
    example: "countersign console-access list",
    options: (command) => command,
    schema: z.object({}),
    run: async (_options, io) => {
      const rows = (await withLedger(io, listOperators)).map((row) => ({
        ...row,
        createdAt: toIso(row.createdAt),
        revokedAt: row.revokedAt === null ? null : toIso(row.revokedAt),
      }));
      const text = table(
        ["operator", "name", "role", "tenants", "since", "revoked"],
        rows.map((row) => [
          row.operatorId,
          row.name,
          row.role,
          row.tenants?.join(", ") ?? "all",
          row.createdAt,
          row.revokedAt ?? "-",
        ]),
        "nobody may log in: countersign console-access add",
      );
      return { value: rows, text };
    },
  });
  define(access, tools, {
    name: "revoke",
    description: "End a token; whoever is logged in by it is out within seconds.",
    example: "countersign console-access revoke --operator 0192f0c0-…",
    options: (command) => command.requiredOption("--operator <id>", "as console-access list shows it"),
    schema: z.object({ operator: z.uuid("must be the id that console-access list shows") }),
    run: async ({ operator }, io) => {
      const ended = await withLedger(io, (ledger) => revokeOperator(ledger, operator));
      return { value: { operatorId: operator, revoked: ended }, text: ended ? "revoked" : "was revoked before" };
    },
  });
}
