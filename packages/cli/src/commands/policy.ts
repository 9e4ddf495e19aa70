import {
  isPolicyName,
  listPolicies,
  NotFoundError,
  policies,
  revokePolicy,
  toIso,
  writePolicy,
} from "@countersign/ledger";
import { actions } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { actorOption, connectionOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

const names = Object.keys(policies);
const policyName = z.string().refine(isPolicyName, `must be one of ${names.join(", ")}`);

/** `policy write|list|revoke`. */
export function addPolicy(program: Command, tools: CommandTools): void {
  const policy = program
    .command("policy")
    .alias("policies")
    .description("What a tenant has decided beforehand, in writing.");
  define(policy, tools, {
    name: "write",
    description: `Put a policy in force: ${names.join(", ")}. It decides as a named actor, through the same checks as a person.`,
    example:
      "countersign policy write --tenant acme --policy treat-unprovable-as-done --action RESEND --who legal-3 --why 'a reminder may be lost'",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose policy")
        .requiredOption("--policy <name>", "which")
        .requiredOption("--action <action>", "for which")
        .option("--connection <id>", "only on this connection")
        .requiredOption("--who <id>", "opaque id of who writes it")
        .requiredOption("--why <text>", "kept for ever; no names or addresses"),
    choices: { "--policy": names, "--action": actions },
    schema: z.object({
      tenant: tenantOption,
      policy: policyName,
      action: z.enum(actions, `must be one of ${actions.join(", ")}`),
      connection: connectionOption.optional(),
      who: actorOption,
      why: z.string(),
    }),
    run: async ({ tenant, policy: name, action, connection, who, why }, io) => {
      const policyId = await withLedger(io, (ledger) =>
        writePolicy(ledger, {
          tenantId: tenant,
          policy: name,
          action,
          by: who,
          reason: why,
          ...(connection === undefined ? {} : { connectionId: connection }),
        }),
      );
      return { value: { policyId }, text: `Policy ${policyId} is in force.` };
    },
  });
  define(policy, tools, {
    name: "list",
    description: "Policies in force.",
    example: "countersign policy list --tenant acme",
    options: (command) => command.requiredOption("--tenant <id>", "whose policies"),
    schema: z.object({ tenant: tenantOption }),
    run: async ({ tenant }, io) => {
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listPolicies(ledger, tenant);
      });
      const rows = list.map((each) => [
        each.policyId,
        each.policy,
        each.action,
        each.connectionId ?? "all",
        each.writtenBy,
        toIso(each.createdAt),
      ]);
      return { value: list, text: table(["id", "policy", "action", "connection", "by", "since"], rows, "no policies") };
    },
  });
  define(policy, tools, {
    name: "revoke",
    description: "Take a policy out of force. What it decided stays.",
    example: "countersign policy revoke 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme --who legal-3",
    options: (command) =>
      command
        .argument("<policy>", "its id")
        .requiredOption("--tenant <id>", "whose policy")
        .requiredOption("--who <id>", "opaque id of who revokes it"),
    schema: z.object({ policy: z.uuid("must be the id of a policy"), tenant: tenantOption, who: actorOption }),
    run: async ({ policy: policyId, tenant, who }, io) => {
      const revoked = await withLedger(io, (ledger) => revokePolicy(ledger, tenant, policyId, who));
      if (!revoked) throw new NotFoundError("policy");
      return { value: { policyId, revoked }, text: "Revoked." };
    },
  });
}
