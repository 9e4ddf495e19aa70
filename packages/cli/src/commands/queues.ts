import { pauseQueue, type QueueStanding, queueNames, queueStandings, resumeQueue } from "@countersign/queue";
import type { Command } from "commander";
import { z } from "zod";
import { seconds } from "../age.js";
import { type CommandTools, define } from "../define.js";
import { table } from "../table.js";
import { withQueues } from "../with-queues.js";

/** `queues list|pause|resume`. */
export function addQueues(program: Command, tools: CommandTools): void {
  const queues = program
    .command("queues")
    .alias("queue")
    .description(
      "The queues between the ledger and its workers. Jobs are nudges: what is to be done stands in the ledger.",
    );
  define(queues, tools, {
    name: "list",
    description: "How many jobs wait, run, are delayed and failed, and for how long the oldest has waited.",
    example: "countersign queues list",
    schema: z.object({}),
    run: async (_options, io) => {
      const found = await withQueues(io, async (opened) => ({
        store: opened.kind,
        queues: await queueStandings(opened),
      }));
      const value = {
        ...found,
        queues: found.queues.map((each) => ({ ...each, oldestWaitingMs: each.oldestWaitingMs ?? null })),
      };
      return { value, text: standingsTable(found.queues) };
    },
  });
  addSwitch(queues, tools, true);
  addSwitch(queues, tools, false);
}

function standingsTable(standings: readonly QueueStanding[]): string {
  const head = ["queue", "state", "waiting", "oldest", "active", "delayed", "failed"];
  const rows = standings.map(({ queue, paused, jobs, oldestWaitingMs }) => [
    queue,
    paused ? "paused" : "open",
    String(jobs.waiting),
    oldestWaitingMs === undefined ? "-" : seconds(oldestWaitingMs / 1_000),
    String(jobs.active),
    String(jobs.delayed),
    String(jobs.failed),
  ]);
  return table(head, rows, "no queues");
}

function addSwitch(queues: Command, tools: CommandTools, pause: boolean): void {
  const name = pause ? "pause" : "resume";
  define(queues, tools, {
    name,
    description: pause
      ? "Let workers take nothing more from a queue, of all tenants. Jobs under way end. An emptied Redis forgets the pause: " +
        "to stop sending for sure, use countersign hold."
      : "Let workers take from a queue again.",
    example: `countersign queues ${name} reconcile`,
    options: (command) => command.argument("<queue>", "which"),
    choices: { queue: queueNames },
    schema: z.object({ queue: z.enum(queueNames, `must be one of ${queueNames.join(", ")}`) }),
    run: async ({ queue }, io) => {
      await withQueues(io, (opened) => (pause ? pauseQueue(opened, queue) : resumeQueue(opened, queue)));
      const text = pause ? `Queue ${queue} is paused: countersign queues resume ${queue}` : `Queue ${queue} is open.`;
      return { value: { queue, paused: pause }, text };
    },
  });
}
