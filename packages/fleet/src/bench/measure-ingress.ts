import { fileURLToPath } from "node:url";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { Child } from "../child.js";
import { FleetError, ProcessNotReadyError } from "../errors.js";
import { Fleet } from "../fleet.js";
import { makeEvents, quantile, Sender } from "./deliveries.js";
import { type CostsPerEvent, costsPerEvent, readCosts, readCostsAfresh } from "./postgres-costs.js";
import { eventsOfBoundRequests, type WebhookScene } from "./webhook-scene.js";

/** What takes the deliveries: our ingress, or one of the ways in which others do it. */
export type IngressKind = "countersign" | "queue.add" | "transaction";

/** One measured ingress. */
export interface IngressMeasured extends CostsPerEvent {
  readonly what: IngressKind;
  /** Deliveries under way at once. */
  readonly sideBySide: number;
  /** Distinct deliveries that the rate and the times are of. */
  readonly events: number;
  readonly perSecond: number;
  /** From a delivery's first byte to its 2xx. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The process's life long, those included that warmed it up. */
  readonly acknowledged: number;
  /** Found in the store afterwards. */
  readonly stored: number;
}

/** How much to deliver. */
export interface IngressLoad {
  readonly events: number;
  readonly sideBySide: number;
}

/** A process that takes deliveries. */
interface Ingress {
  readonly url: string;
  readonly path: string;
  stop(): Promise<void>;
}

/** First so many deliveries by hundred warm the process up. */
const warmUpPercent = 10;
/** As many connections as our ingress has by default. */
const poolSize = 10;
const stopMs = 5_000;

/**
 * Delivers to a fresh process. What PostgreSQL did is counted over that process's whole life, by all acknowledged events.
 * @throws FleetError where not every delivery was acknowledged, or the store holds another number
 */
export async function measureIngress(
  scene: WebhookScene,
  what: IngressKind,
  load: IngressLoad,
): Promise<IngressMeasured> {
  const { ledger, secret } = scene;
  const count = load.events + Math.ceil((load.events * warmUpPercent) / 100);
  const events = what === "countersign" ? await eventsOfBoundRequests(scene, count) : makeEvents(count);
  const storedBefore = await storedBy(scene, what);
  const before = await readCostsAfresh(ledger);
  const ingress = await start(scene, what);
  const sender = new Sender({ ...ingress, secret }, load.sideBySide);
  const warm = await sender.deliver(events.slice(load.events));
  const measured = await sender.deliver(events.slice(0, load.events));
  await sender.close();
  await ingress.stop();
  const after = await readCosts(ledger);
  const acknowledged = warm.acknowledged + measured.acknowledged;
  const stored = (await storedBy(scene, what)) - storedBefore;
  if (acknowledged !== count || stored !== count) {
    throw new FleetError(`${what}: ${count} events delivered, ${acknowledged} acknowledged, ${stored} stored`);
  }
  return {
    what,
    ...load,
    perSecond: load.events / measured.seconds,
    p50Ms: quantile(measured.timesMs, 0.5),
    p99Ms: quantile(measured.timesMs, 0.99),
    acknowledged,
    stored,
    ...costsPerEvent(before, after, acknowledged),
  };
}

function start(scene: WebhookScene, what: IngressKind): Promise<Ingress> {
  return what === "countersign" ? startOurs(scene) : startBaseline(scene, what);
}

async function startOurs(scene: WebhookScene): Promise<Ingress> {
  const fleet = await Fleet.start({
    scale: { enqueuer: 0, "webhook-ingress": 1, console: 0, submit: 0, reconcile: 0, "webhook-apply": 0 },
    // The time in which only baselines ran is no outage to be caught up.
    env: { ...scene.env, DATABASE_POOL: String(poolSize), WEBHOOK_GAP_MS: "86400000" },
    logDir: scene.logDir,
    say: (text) => void process.stderr.write(`${text}\n`),
  });
  return { url: fleet.urlOf("webhook-ingress"), path: scene.path, stop: () => fleet.stop() };
}

const baselineScript = fileURLToPath(new URL("../../dist/bench/baseline-ingress.js", import.meta.url));
const ready = z.object({ url: z.string() });

async function startBaseline(scene: WebhookScene, what: Exclude<IngressKind, "countersign">): Promise<Ingress> {
  await scene.ledger.sql`
    CREATE TABLE IF NOT EXISTS baseline_inbox (event_id text PRIMARY KEY, type text NOT NULL, received_at timestamptz NOT NULL DEFAULT now())`;
  await scene.ledger.sql`CREATE TABLE IF NOT EXISTS baseline_body (event_id text PRIMARY KEY, bytes bytea NOT NULL)`;
  const child = new Child({
    script: baselineScript,
    env: { ...scene.env, BASELINE: what, SECRET: scene.secret, DATABASE_POOL: String(poolSize) },
    logFile: `${scene.logDir}/baseline-ingress.log`,
  });
  const message = ready.safeParse(await child.firstMessage());
  if (!message.success) throw new ProcessNotReadyError(`the baseline ${what}`, "it ended", child.logTail());
  return { url: message.data.url, path: "/webhooks", stop: () => child.stop(stopMs) };
}

async function storedBy({ ledger, redisUrl }: WebhookScene, what: IngressKind): Promise<number> {
  if (what === "queue.add") return await waitingJobs(redisUrl ?? "");
  if (what === "countersign") {
    const [row] = await ledger.sql<{ count: number }[]>`
      SELECT /* bench */ count(*)::int AS count FROM webhook_inbox i JOIN webhook_body b USING (tenant_id, inbox_id, received_at)`;
    return row?.count ?? 0;
  }
  const [table] = await ledger.sql<{ present: boolean }[]>`
    SELECT /* bench */ to_regclass('baseline_body') IS NOT NULL AS present`;
  if (table?.present !== true) return 0;
  const [row] = await ledger.sql<{ count: number }[]>`
    SELECT /* bench */ count(*)::int AS count FROM baseline_inbox JOIN baseline_body USING (event_id)`;
  return row?.count ?? 0;
}

async function waitingJobs(redisUrl: string): Promise<number> {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue("webhooks", { connection });
  const count = await queue.getWaitingCount();
  await queue.close();
  connection.disconnect();
  return count;
}
