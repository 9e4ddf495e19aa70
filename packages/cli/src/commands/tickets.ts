import { openDecisions, planningParts, voidRequestOf } from "@countersign/client/transaction";
import {
  closeTicket,
  decideDuplicate,
  getOperation,
  getTicket,
  knownReferences,
  type Ledger,
  listTickets,
  NotFoundError,
  type Ticket,
  ticketKinds,
  toIso,
  waitersOf,
} from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";
import { RefusedError, UsageError } from "../errors.js";
import { actorOption, integerOption, reasonOption, tenantOption } from "../options.js";
import { table } from "../table.js";
import { withLedger } from "../with-ledger.js";
import { consequence, referenceLine } from "./consequence.js";

/** `tickets list|show|close|decide`. */
export function addTickets(program: Command, tools: CommandTools): void {
  const tickets = program.command("tickets").description("What somebody has been asked to look at.");
  addShow(tickets, tools);
  addClose(tickets, tools);
  addDecide(tickets, tools);
  define(tickets, tools, {
    name: "list",
    description: "Tickets of a tenant, the most urgent first.",
    example: "countersign tickets list --tenant acme",
    options: (command) =>
      command
        .requiredOption("--tenant <id>", "whose tickets")
        .option("--limit <n>", "how many at most", "100")
        .option("--kind <kind>", "only this one")
        .option("--closed", "those that are closed, the last first"),
    choices: { "--kind": ticketKinds },
    schema: z.object({
      tenant: tenantOption,
      limit: integerOption(1, 1_000),
      kind: z.enum(ticketKinds, `must be one of ${ticketKinds.join(", ")}`).optional(),
      closed: z.boolean().default(false),
    }),
    run: async ({ tenant, limit, kind, closed }, io) => {
      const list = await withLedger(io, async (ledger) => {
        await ledger.tenantKey(tenant);
        return await listTickets(ledger, tenant, limit, {
          status: closed ? "closed" : "open",
          ...(kind === undefined ? {} : { kind }),
        });
      });
      const rows = list.map((each) => [
        each.ticketId,
        each.kind,
        each.reason,
        `${each.subjectKind} ${each.subjectId}`,
        each.owner,
        toIso(each.dueAt),
      ]);
      return {
        value: list,
        text: table(["ticket", "kind", "reason", "about", "owner", "due"], rows, "no open tickets"),
      };
    },
  });
}

const ticketOption = z.uuid("must be the id of a ticket");

function addShow(tickets: Command, tools: CommandTools): void {
  define(tickets, tools, {
    name: "show",
    description: "One ticket, with what its decision needs and would do.",
    example: "countersign tickets show 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme",
    options: (command) => command.argument("<ticket>", "its id").requiredOption("--tenant <id>", "whose ticket"),
    schema: z.object({ ticket: ticketOption, tenant: tenantOption }),
    run: async ({ ticket: ticketId, tenant }, io) =>
      await withLedger(io, async (ledger) => {
        const found = await getTicket(ledger, tenant, ticketId);
        if (found === undefined) throw new NotFoundError("ticket");
        const about = found.subjectKind === "operation" ? await decidable(ledger, tenant, found) : undefined;
        const lines = [
          `${found.kind} (${found.reason}) about ${found.subjectKind} ${found.subjectId}`,
          `owner ${found.owner}, opened ${toIso(found.openedAt)}, due ${toIso(found.dueAt)}`,
          found.resolvedAt === null
            ? "open"
            : `closed ${toIso(found.resolvedAt)} by ${found.resolvedBy ?? ""}: ${found.resolution ?? ""}`,
          ...(about === undefined ? [] : [`${about.action} is ${about.state}, evidence number ${about.evidenceNo}`]),
          ...(about?.references ?? []).map(referenceLine),
          ...(about?.waiting ?? []).map((each) => `${each.action} ${each.operationId} waits for it (${each.relation})`),
          ...(about?.decisions ?? []).map((each) => `may be decided: ${consequence(each)}`),
        ];
        return { value: { ...found, ...about }, text: lines.join("\n") };
      }),
  });
}

async function decidable(ledger: Ledger, tenantId: string, ticket: Ticket) {
  const operation = await getOperation(ledger, tenantId, ticket.subjectId);
  if (operation === undefined) return undefined;
  const references = await knownReferences(ledger.sql, tenantId, ticket.subjectId);
  const waiting = await waitersOf(ledger, tenantId, ticket.subjectId);
  const { action, state, evidenceNo } = operation;
  const about = { ticketKind: ticket.kind, action, state, references, waiting: waiting.length };
  const decisions = ticket.resolvedAt === null ? openDecisions(about) : [];
  return { action, state, evidenceNo, references, waiting, decisions };
}

function addClose(tickets: Command, tools: CommandTools): void {
  define(tickets, tools, {
    name: "close",
    description: "Close a ticket with a resolution. Reviews and duplicates are decided instead.",
    example:
      "countersign tickets close 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme --who u-17 --resolution 'provider was down'",
    options: (command) =>
      command
        .argument("<ticket>", "its id")
        .requiredOption("--tenant <id>", "whose ticket")
        .requiredOption("--who <id>", "opaque id of who closes it")
        .requiredOption("--resolution <text>", "what came of it"),
    schema: z.object({ ticket: ticketOption, tenant: tenantOption, who: actorOption, resolution: reasonOption }),
    run: async ({ ticket: ticketId, tenant, who, resolution }, io) => {
      await withLedger(io, (ledger) => closeTicket(ledger, { tenantId: tenant, ticketId, who, resolution }));
      return { value: { ticketId, closed: true }, text: "Closed." };
    },
  });
}

function addDecide(tickets: Command, tools: CommandTools): void {
  define(tickets, tools, {
    name: "decide",
    description: "Decide a duplicate ticket: one reference stays, every other that is not over gets a VOID.",
    example:
      "countersign tickets decide 7d0f6f0e-6f5c-4f0e-8a55-1d0e8f3f2c11 --tenant acme --keep sr_123 --evidence 2 --who u-17 --why 'customer signs this one'",
    options: (command) =>
      command
        .argument("<ticket>", "its id")
        .requiredOption("--tenant <id>", "whose ticket")
        .option("--keep <reference>", "which stays")
        .option("--keep-none", "none stays")
        .requiredOption("--evidence <n>", "the evidence number that `tickets show` printed")
        .requiredOption("--who <id>", "opaque id of who decides")
        .requiredOption("--why <text>", "kept for ever; no names or addresses"),
    schema: z.object({
      ticket: ticketOption,
      tenant: tenantOption,
      keep: z.string().min(1).max(255).optional(),
      keepNone: z.boolean().default(false),
      evidence: integerOption(0, 1_000_000),
      who: actorOption,
      why: reasonOption,
    }),
    run: async ({ ticket: ticketId, tenant, keep, keepNone, evidence, who, why }, io) => {
      if ((keep === undefined) === !keepNone) throw new UsageError("give one of --keep and --keep-none; see --help");
      return await withLedger(io, async (ledger) => {
        const decided = await decideDuplicate(ledger, {
          tenantId: tenant,
          ticketId,
          ...(keep === undefined ? {} : { keep }),
          evidenceNo: evidence,
          who,
          why,
          basis: "person",
          voidRequest: voidRequestOf(await providerOfTicket(ledger, tenant, ticketId)),
        });
        const planned = decided.planned.map((each) => each.operationId);
        const text = `Decided. VOIDs planned: ${planned.length === 0 ? "none" : planned.join(", ")}; over already: ${decided.leftAlone}.`;
        return { value: { ...decided, planned }, text };
      });
    },
  });
}

async function providerOfTicket(ledger: Ledger, tenantId: string, ticketId: string) {
  const ticket = await getTicket(ledger, tenantId, ticketId);
  if (ticket === undefined) throw new NotFoundError("ticket");
  if (ticket.subjectKind !== "operation")
    throw new RefusedError("ticket-unsuitable", "this ticket is not about an operation");
  const operation = await getOperation(ledger, tenantId, ticket.subjectId);
  const parts = planningParts(ledger);
  const connection = (await parts.connections(tenantId)).find((each) => each.connectionId === operation?.connectionId);
  const provider = connection === undefined ? undefined : parts.provider(connection.provider);
  if (provider === undefined) throw new RefusedError("provider-unknown", "this build has no adapter for the provider");
  return provider;
}
