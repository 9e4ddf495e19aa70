import { setTimeout as delay } from "node:timers/promises";
import { FleetError } from "../errors.js";
import { Fleet } from "../fleet.js";
import { type CostsPerEvent, costsPerEvent, readCosts, readCostsAfresh } from "./postgres-costs.js";
import type { WebhookScene } from "./webhook-scene.js";

/** What applying the stored events took. */
export interface ApplierMeasured extends CostsPerEvent {
  readonly events: number;
  /** From the first event applied until 99 % are, by the database's clock. */
  readonly perSecond: number;
  /** From the first to the last, s: one that its job left as it was waits for its next visit. */
  readonly lastAfterSeconds: number;
}

/** The rate is of so many: a few stragglers would otherwise say nothing but how long they waited. */
const mostShare = 0.99;
const pollMs = 500;
const limitMs = 600_000;

/**
 * One applier process settles every stored event, its jobs waiting as the ingress handed them over. Costs are the whole
 * process's: heartbeats and the due loop included. @throws FleetError where not all of them end as APPLIED
 */
export async function measureApplier(scene: WebhookScene): Promise<ApplierMeasured> {
  const { ledger } = scene;
  const before = await readCostsAfresh(ledger);
  const fleet = await Fleet.start({
    scale: { enqueuer: 0, "webhook-ingress": 0, console: 0, submit: 0, reconcile: 0, "webhook-apply": 1 },
    env: scene.env,
    logDir: scene.logDir,
    say: (text) => void process.stderr.write(`${text}\n`),
  });
  await untilSettled(scene);
  await fleet.stop();
  const after = await readCosts(ledger);
  const { stored, applied, most, last } = await readSpans(scene);
  if (applied !== stored) throw new FleetError(`${stored} events stored, ${applied} applied`);
  const perSecond = (applied * mostShare) / most;
  return { events: applied, perSecond, lastAfterSeconds: last, ...costsPerEvent(before, after, applied) };
}

interface Spans {
  readonly stored: number;
  readonly applied: number;
  /** From the first application to that of the share counted, and to the last; s. */
  readonly most: number;
  readonly last: number;
}

async function readSpans({ ledger }: WebhookScene): Promise<Spans> {
  const [row] = await ledger.sql<Spans[]>`
    SELECT /* bench */ count(*)::int AS stored, count(*) FILTER (WHERE status = 'APPLIED')::int AS applied,
      EXTRACT(EPOCH FROM percentile_disc(${mostShare}::float8) WITHIN GROUP (ORDER BY applied_at) - min(applied_at))::float8 AS most,
      EXTRACT(EPOCH FROM max(applied_at) - min(applied_at))::float8 AS last
    FROM webhook_inbox`;
  return row ?? { stored: 0, applied: 0, most: Number.NaN, last: Number.NaN };
}

async function untilSettled({ ledger }: WebhookScene): Promise<void> {
  const end = performance.now() + limitMs;
  for (;;) {
    const [row] = await ledger.sql<{ left: boolean }[]>`
      SELECT /* bench */ EXISTS (SELECT 1 FROM webhook_inbox WHERE due_at IS NOT NULL) AS left`;
    if (row?.left === false) return;
    if (performance.now() > end) throw new FleetError(`not all events applied after ${limitMs / 1_000} s`);
    await delay(pollMs);
  }
}
