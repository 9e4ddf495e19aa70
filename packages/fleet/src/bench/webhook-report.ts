import { table } from "@countersign/cli";
import type { IngressKind } from "./measure-ingress.js";
import type { WebhookBench } from "./webhooks.js";

const names: Readonly<Record<IngressKind, string>> = {
  countersign: "countersign",
  "queue.add": "verify, BullMQ add (AOF everysec)",
  transaction: "verify, one transaction each",
};

const whole = (value: number): string => String(Math.round(value));
const two = (value: number): string => value.toFixed(2);

/** The measurements as they are read at a terminal. */
export function webhookReport(bench: WebhookBench): string {
  const { cores, queues, postgres, applier } = bench;
  const stack = `PostgreSQL with fsync and synchronous_commit on (a commit alone takes ${two(postgres.commitMs)} ms)`;
  const lines = [
    `${cores} cores shared by sender, ingress, ${stack}, and queues (${queues === "redis" ? "Redis" : "PostgreSQL"}).`,
    ingressTable(bench),
    `Applied: ${whole(applier.perSecond)} events/s by one process until 99 % of ${applier.events} were, the last after ${applier.lastAfterSeconds.toFixed(1)} s.`,
    `Each: ${two(applier.commitsPerEvent)} commits, ${two(applier.statementsPerEvent)} statements besides BEGIN and COMMIT, ${whole(applier.walBytesPerEvent)} bytes of WAL.`,
  ];
  if (queues === "postgres") lines.push("No Redis is to be had here: not compared with BullMQ's add.");
  return lines.join("\n");
}

function ingressTable({ ingress, ratios }: WebhookBench): string {
  const head = [
    "at once",
    "acknowledged by",
    "events/s",
    "p50 ms",
    "p99 ms",
    "commits",
    "WAL bytes",
    "stored",
    "ours/this",
  ];
  const rows = ingress.map((each) => {
    const ratio = ratios.find(({ sideBySide, baseline }) => sideBySide === each.sideBySide && baseline === each.what);
    return [
      String(each.sideBySide),
      names[each.what],
      whole(each.perSecond),
      two(each.p50Ms),
      two(each.p99Ms),
      two(each.commitsPerEvent),
      whole(each.walBytesPerEvent),
      `${each.stored} of ${each.acknowledged}`,
      ratio === undefined ? "" : two(ratio.perSecond),
    ];
  });
  return table(head, rows, "nothing measured");
}
