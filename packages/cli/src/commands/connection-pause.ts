import { type Ledger, pauseByPerson, resumeConnection, toIso } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { chooseConnection } from "../choose-connection.js";
import { type CommandTools, define } from "../define.js";
import { UsageError } from "../errors.js";
import {
  actorOption,
  connectionOption,
  durationOption,
  integerOption,
  reasonOption,
  tenantOption,
} from "../options.js";
import { withLedger } from "../with-ledger.js";

const which = (command: Command): Command =>
  command
    .requiredOption("--tenant <id>", "whose connection")
    .option("--connection <id>", "which one (the only or default one when left out)");

/** `connection pause`. */
export function addConnectionPause(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "pause",
    description:
      "Call the provider no more on a connection: until resumed (opens a ticket), or for a time. Never shortens a pause. " +
      "To stop sending while looks go on, use countersign hold.",
    example:
      "countersign connection pause --tenant acme --connection main --who u-17 --why 'provider maintenance' --for 30m",
    options: (command) =>
      which(command)
        .requiredOption("--who <id>", "opaque id of who pauses")
        .requiredOption("--why <text>", "no names or addresses")
        .option("--for <duration>", "end by itself after 90s, 30m, 24h or 7d")
        .option("--minutes <n>", "the same, in minutes")
        .option("--until <instant>", "end by itself then: 2026-01-31T08:00:00Z"),
    schema: z.object({
      tenant: tenantOption,
      connection: connectionOption.optional(),
      who: actorOption,
      why: reasonOption,
      for: durationOption.optional(),
      minutes: integerOption(1, 10_080).optional(),
      until: z.iso.datetime({ offset: true, error: "must be an instant: 2026-01-31T08:00:00Z" }).optional(),
    }),
    run: async ({ tenant, connection, who, why, for: forMs, minutes, until }, io) => {
      if ([forMs, minutes, until].filter((each) => each !== undefined).length > 1) {
        throw new UsageError("give one of --for, --minutes and --until, or none; see --help");
      }
      const ms = forMs ?? (minutes === undefined ? undefined : minutes * 60_000);
      const end = { ...(ms === undefined ? {} : { forMs: ms }), ...(until === undefined ? {} : { until }) };
      const paused = await onConnection(io, tenant, connection, async (ledger, connectionId) => ({
        connectionId,
        ...(await pauseByPerson(ledger, { tenantId: tenant, connectionId, who, why, ...end })),
      }));
      const pausedUntil = paused.pausedUntil === null ? null : toIso(paused.pausedUntil);
      const ends = pausedUntil === null ? "until it is resumed" : `until ${pausedUntil}`;
      return {
        value: { tenantId: tenant, paused: true, ...paused, pausedUntil },
        text: `Connection ${paused.connectionId} is paused ${ends} (${paused.reason}); what is in flight ends normally.`,
      };
    },
  });
}

/** `connection resume`. */
export function addConnectionResume(parent: Command, tools: CommandTools): void {
  define(parent, tools, {
    name: "resume",
    description: "End a pause and close its ticket; what waited for it is due gradually.",
    example: "countersign connection resume --tenant acme --connection main --who u-17",
    options: (command) => which(command).requiredOption("--who <id>", "opaque id of who resumes"),
    schema: z.object({ tenant: tenantOption, connection: connectionOption.optional(), who: actorOption }),
    run: async ({ tenant, connection, who }, io) => {
      const connectionId = await onConnection(io, tenant, connection, async (ledger, id) => {
        await resumeConnection(ledger, tenant, id, `person:${who}`);
        return id;
      });
      return { value: { tenantId: tenant, connectionId, paused: false }, text: `Connection ${connectionId} is open.` };
    },
  });
}

const onConnection = <Value>(
  io: Parameters<typeof withLedger>[0],
  tenant: string,
  named: string | undefined,
  work: (ledger: Ledger, connectionId: string) => Promise<Value>,
): Promise<Value> => withLedger(io, async (ledger) => work(ledger, await chooseConnection(ledger, tenant, named)));
