import { countOutcomes, describeEvent, dryRunReplay, replayMany, toInboxFilter } from "@countersign/client/transaction";
import { discardInbox, type InboxEvent, listInbox, replayable, toIso } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define, type Result } from "../define.js";
import { UsageError } from "../errors.js";
import { inboxFilterOptions, inboxFilterSchema } from "../inbox-filter.js";
import { actorOption, integerOption, reasonOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";

const eventOption = z.uuid("must be the id of an event, as `inbox list` prints it");

/** `inbox list|show|replay|discard`. */
export function addInbox(program: Command, tools: CommandTools): void {
  const inbox = program
    .command("inbox")
    .description("Webhook events as they were stored: quarantined, dead, waiting, applied.");
  addList(inbox, tools);
  addShow(inbox, tools);
  addReplay(inbox, tools);
  addDiscard(inbox, tools);
}

function addList(inbox: Command, tools: CommandTools): void {
  define(inbox, tools, {
    name: "list",
    description: "Events of a tenant, the newest first.",
    example: "countersign inbox list --tenant acme --open --since 24h",
    options: (command) =>
      inboxFilterOptions(command.requiredOption("--tenant <id>", "whose events"))
        .option("--open", `only what a person has to look at: ${replayable.join(", ")}`)
        .option("--limit <n>", "how many at most", "50")
        .option("--cursor <event>", "go on after this one"),
    schema: z.object({
      tenant: tenantOption,
      ...inboxFilterSchema,
      open: z.boolean().default(false),
      limit: integerOption(1, 1_000),
      cursor: eventOption.optional(),
    }),
    run: async ({ tenant, open, limit, cursor, ...conditions }, io) => {
      if (open && conditions.status !== undefined) throw new UsageError("give one of --open and --status; see --help");
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        const filter = { ...toInboxFilter(conditions), ...(open ? { status: replayable } : {}) };
        return await listInbox(ledger, tenant, filter, { limit, ...(cursor === undefined ? {} : { cursor }) });
      });
      const rows = list.map((event) => [
        event.inboxId,
        toIso(event.receivedAt),
        event.status,
        event.outcome ?? "",
        event.eventType ?? "",
        event.providerRef ?? "",
        event.hint ? "only a hint" : "",
      ]);
      const head = ["event", "received", "status", "reason", "type", "reference", "proof"];
      return { value: list, text: table(head, rows, "no events") };
    },
  });
}

function addShow(inbox: Command, tools: CommandTools): void {
  define(inbox, tools, {
    name: "show",
    description:
      "One event: how it was proven, what became of it, its request and tickets, and what a replay would do.",
    example: "countersign inbox show 0190b7e2-0000-7000-8000-000000000001 --tenant acme",
    options: (command) => command.argument("<event>", "its id").requiredOption("--tenant <id>", "whose event"),
    schema: z.object({ event: eventOption, tenant: tenantOption }),
    run: async ({ event: inboxId, tenant }, io) => {
      const found = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await describeEvent(ledger, providerByName, { tenantId: tenant, inboxId });
      });
      const { event, request, tickets, replay } = found;
      const lines = [
        `${event.eventType ?? "an event of no known type"} is ${event.status}${because(event.outcome)}`,
        ...factsOf(event).map(([name, value]) => `${name.padEnd(14)} ${value}`),
        request === null
          ? "It names no request."
          : `It speaks of ${request.reference}: ${request.status ?? "status unknown"}, ${
              request.operationId === null ? "bound to no operation" : `operation ${request.operationId}`
            }.`,
        ...tickets.map(
          (each) =>
            `ticket ${each.ticketId}: ${each.kind}, owner ${each.owner}, ${each.resolvedAt === null ? `due ${toIso(each.dueAt)}` : `closed: ${each.resolution ?? ""}`}`,
        ),
        `A replay would: ${inWords(replay.outcome, replay.reason, replay.status)}.`,
      ];
      return { value: { ...event, request, tickets, replay }, text: lines.join("\n") };
    },
  });
}

const because = (reason: string | null): string => (reason === null ? "." : ` (${reason}).`);

function factsOf(event: InboxEvent): [string, string][] {
  return [
    ["event id", `${event.providerEventId}${event.weakId ? " (derived: its sender gave none)" : ""}`],
    ["proof", event.hint ? "only a hint: the provider is asked before anything is applied" : "verified"],
    ["received", `${toIso(event.receivedAt)} at ${event.endpointId}, connection ${event.connectionId}`],
    ...(event.conflicting
      ? [["conflicting", "another body or id came with it: compare both"] as [string, string]]
      : []),
    ...(event.appliedAt === null ? [] : [["applied", toIso(event.appliedAt)] as [string, string]]),
    ...(event.dueAt === null ? [] : [["due", toIso(event.dueAt)] as [string, string]]),
    ...(event.failures === 0 ? [] : [["failures", String(event.failures)] as [string, string]]),
    ...(event.replays === 0
      ? []
      : [["replayed", `${event.replays} times, last by ${event.replayedBy ?? ""}`] as [string, string]]),
    ...(event.discardedBy === null
      ? []
      : [["discarded", `by ${event.discardedBy}: ${event.discardReason ?? ""}`] as [string, string]]),
    ["bytes", event.hasBody ? "kept" : "erased; digest and history remain"],
  ];
}

/** What an outcome means, for a reader. */
function inWords(outcome: string, reason: string | null, status: string | null): string {
  switch (outcome) {
    case "applied":
      return `be applied: the request becomes ${status ?? ""}`;
    case "nothing":
      return `change nothing (${reason ?? ""})`;
    case "conflict":
      return `be a person's again (${reason ?? ""})`;
    case "asks-provider":
      return `ask the provider first and apply what it says (${reason ?? ""})`;
    case "waits":
      return "wait for its reference, which is bound to nothing";
    case "quarantined":
      return `be quarantined again (${reason ?? ""})`;
    default:
      return `fail (${reason ?? ""})`;
  }
}

function addReplay(inbox: Command, tools: CommandTools): void {
  define(inbox, tools, {
    name: "replay",
    description:
      "Make events due again: those named, or all that match. They are applied through the same conditional writes as at " +
      "first, so pressing twice changes nothing more. --dry-run says per event what would happen.",
    example: "countersign inbox replay --tenant acme --reason unknown-type --since 2d --who u-17 --dry-run",
    options: (command) =>
      inboxFilterOptions(command.argument("[events...]", "their ids").requiredOption("--tenant <id>", "whose events"))
        .option("--all", "everything that may be replayed")
        .option("--dry-run", "change nothing, say what would happen")
        .option("--who <id>", "opaque id of who replays; not needed with --dry-run")
        .option("--limit <n>", "how many at most", "1000"),
    schema: z.object({
      events: z.array(eventOption).max(10_000),
      tenant: tenantOption,
      ...inboxFilterSchema,
      all: z.boolean().default(false),
      dryRun: z.boolean().default(false),
      who: actorOption.optional(),
      limit: integerOption(1, 10_000),
    }),
    run: async ({ events, tenant, all, dryRun, who, limit, ...conditions }, io) => {
      const filter = toInboxFilter({ ...conditions, ...(events.length === 0 ? {} : { ids: events }) });
      const filtered = Object.keys(filter).length > 0;
      if (filtered === all) {
        throw new UsageError(
          all
            ? "--all takes no events and no conditions beside it; see --help"
            : "name events, give a condition (--reason, --since, …) or --all; see --help",
        );
      }
      return await withLedger(io, async (ledger): Promise<Result> => {
        await ledger.tenantKey(tenant);
        if (dryRun) {
          const { rows, more } = await dryRunReplay(ledger, {
            tenantId: tenant,
            filter,
            limit,
            provider: providerByName,
            onProgress: (looked) => {
              if (looked > 0 && looked % 1_000 === 0) io.err(`${looked} events looked at`);
            },
          });
          return dryRunResult(
            rows.map(({ event, preview }) => ({ ...preview, inboxId: event.inboxId, type: event.eventType })),
            more,
          );
        }
        if (who === undefined) throw new UsageError("--who is needed: the opaque id of who replays; see --help");
        const { rows, more } = await replayMany(ledger, tenant, filter, { who, limit });
        const counts = countOutcomes(rows);
        const refused = rows.filter(({ outcome }) => outcome !== "replayed");
        const lines = [
          `${counts.replayed ?? 0} events are due again; workers apply them within seconds.`,
          ...refused.map(({ inboxId, reason }) => `${inboxId} not replayed: ${reason ?? ""}`),
          ...(more ? [again] : []),
        ];
        return { value: { dryRun, rows, counts, more }, text: lines.join("\n") };
      });
    },
  });
}

const again = "There are more: repeat the command once these are applied, or raise --limit.";

function dryRunResult(rows: (Parameters<typeof countOutcomes>[0][number] & { type: string | null })[], more: boolean) {
  const counts = countOutcomes(rows);
  const shown = rows.map((row) => [row.inboxId, row.type ?? "", row.outcome, row.reason ?? "", row.status ?? ""]);
  const sums = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
  const lines = [
    table(["event", "type", "would be", "reason", "request becomes"], shown, "no events match"),
    ...(sums.length === 0 ? [] : [`${sums.join(", ")}. Nothing is changed yet: repeat without --dry-run.`]),
    ...(more ? [again] : []),
  ];
  return { value: { dryRun: true, rows, counts, more }, text: lines.join("\n") };
}

function addDiscard(inbox: Command, tools: CommandTools): void {
  define(inbox, tools, {
    name: "discard",
    description: "End an event that nobody will apply. Who and why stay with it, and its tickets are closed.",
    example:
      "countersign inbox discard 0190b7e2-0000-7000-8000-000000000001 --tenant acme --who u-17 --why 'test of the provider'",
    options: (command) =>
      command
        .argument("<event>", "its id")
        .requiredOption("--tenant <id>", "whose event")
        .requiredOption("--who <id>", "opaque id of who decides")
        .requiredOption("--why <text>", "kept for ever; no names or addresses"),
    schema: z.object({ event: eventOption, tenant: tenantOption, who: actorOption, why: reasonOption }),
    run: async ({ event: inboxId, tenant, who, why }, io) => {
      await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        await discardInbox(ledger, { tenantId: tenant, inboxId, who, why });
      });
      return { value: { inboxId, discarded: true }, text: "Discarded." };
    },
  });
}
