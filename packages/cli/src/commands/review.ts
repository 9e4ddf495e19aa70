import { openDecisions, planningParts, prepareReview } from "@countersign/client/transaction";
import { getOperation, knownReferences, type Ledger, NotFoundError, review, waitersOf } from "@countersign/ledger";
import { loadConfig, windows } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define, type Result } from "../define.js";
import { exitCodes, UsageError } from "../errors.js";
import { actorOption, integerOption, operationOption, reasonOption, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";
import { consequence, referenceLine } from "./consequence.js";

const schema = z.object({
  operation: operationOption,
  tenant: tenantOption,
  keep: z.string().min(1).max(255).optional(),
  keepTarget: z.boolean().default(false),
  abandon: z.boolean().default(false),
  foundByHand: z.boolean().default(false),
  dependants: z.enum(["release", "retire", "retry"], "must be release, retire or retry").optional(),
  who: actorOption,
  why: reasonOption,
  evidence: integerOption(0, 1_000_000).optional(),
});
type Options = z.output<typeof schema>;

/** `review`. */
export function addReview(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "review",
    description:
      "Decide an operation in NEEDS_REVIEW: keep one reference (a VOID is planned for every other) or abandon it. " +
      "Without --evidence nothing is decided: what stands there is printed, with the number to repeat.",
    example:
      "countersign review 0190b7e2-0000-7000-8000-000000000001 --tenant acme --keep sr_123 --who u-17 --why 'customer signs this one' --evidence 4",
    options: (command) =>
      command
        .argument("<operation>", "its id")
        .requiredOption("--tenant <id>", "whose operation")
        .option("--keep <reference>", "keep this reference (SEND)")
        .option("--keep-target", "take it as done (VOID, RESEND, FINALIZE)")
        .option("--abandon", "keep none")
        .option("--found-by-hand", "the reference is not on record: read it at the provider first")
        .option("--dependants <what>", "of operations that wait for an abandoned VOID: release, retire or retry")
        .requiredOption("--who <id>", "opaque id of who decides")
        .requiredOption("--why <text>", "kept for ever; no names or addresses")
        .option("--evidence <n>", "the evidence number that was seen"),
    schema,
    run: async (options, io) => {
      const chosen = [options.keep !== undefined, options.keepTarget, options.abandon].filter(Boolean).length;
      if (chosen !== 1) throw new UsageError("give exactly one of --keep, --keep-target and --abandon; see --help");
      const { QUIESCENCE_MS: quiescenceMs } = loadConfig({ QUIESCENCE_MS: windows.QUIESCENCE_MS }, io.env, {
        name: "countersign",
      });
      return await withLedger(io, async (ledger) =>
        options.evidence === undefined
          ? await show(ledger, options)
          : await decide(ledger, options, options.evidence, quiescenceMs),
      );
    },
  });
}

/** Nobody decides on what they have not seen: what stands there, what the decision would do, and the number to repeat. */
async function show(ledger: Ledger, options: Options): Promise<Result> {
  const { tenant, operation: id } = options;
  const operation = await getOperation(ledger, tenant, id);
  if (operation === undefined) throw new NotFoundError("operation");
  const references = await knownReferences(ledger.sql, tenant, id);
  const waiting = await waitersOf(ledger, tenant, id);
  const { action, state, reason, evidenceNo } = operation;
  const about = { ticketKind: "needs-review", action, state, references, waiting: waiting.length };
  const would = openDecisions(about).find(
    ({ decision, reference }) => (decision === "abandon") === options.abandon && reference === (options.keep ?? null),
  );
  const lines = [
    `${action} is ${state} (${reason}), evidence number ${evidenceNo}.`,
    ...references.map(referenceLine),
    ...waiting.map((each) => `${each.action} ${each.operationId} waits for it (${each.relation})`),
    ...(state === "NEEDS_REVIEW" && would !== undefined ? [consequence(would)] : []),
    state === "NEEDS_REVIEW"
      ? `Nothing is decided yet: repeat with --evidence ${evidenceNo}.`
      : "There is nothing to decide.",
  ];
  return {
    value: { decided: false, state, reason, evidenceNo, references, waiting, would: would ?? null },
    text: lines.join("\n"),
    exitCode: exitCodes.usage,
  };
}

async function decide(ledger: Ledger, options: Options, evidenceNo: number, quiescenceMs: number): Promise<Result> {
  await ledger.tenantKey(options.tenant);
  const prepared = await prepareReview(ledger, planningParts(ledger), {
    tenantId: options.tenant,
    operationId: options.operation,
    decision: options.abandon ? "abandon" : "keep",
    reference: options.keep,
    foundByHand: options.foundByHand,
    evidenceNo,
    who: options.who,
    why: options.why,
    dependants: options.dependants,
  });
  const { state, planned } = await review(ledger, { ...prepared, quiescenceMs });
  const voids = planned.map((each) => each.operationId);
  const text =
    voids.length === 0 ? `Decided: ${state}.` : `Decided: ${state}. VOIDs on their way: ${voids.join(", ")}.`;
  return { value: { decided: true, state, planned: voids }, text };
}
