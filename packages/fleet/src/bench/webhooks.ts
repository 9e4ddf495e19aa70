import { availableParallelism } from "node:os";
import type { Cleanup } from "../cleanup.js";
import { type ApplierMeasured, measureApplier } from "./measure-applier.js";
import { type IngressKind, type IngressMeasured, measureIngress } from "./measure-ingress.js";
import { type Durability, readDurability } from "./postgres-costs.js";
import { openWebhookScene } from "./webhook-scene.js";

/** Our ingress in comparison with one baseline under the same load. */
export interface IngressRatio {
  readonly sideBySide: number;
  readonly baseline: Exclude<IngressKind, "countersign">;
  /** Ours by the baseline's: events a second, and median time to the 2xx. */
  readonly perSecond: number;
  readonly p50Ms: number;
}

/** All that `npm run bench -- --webhooks` measures. */
export interface WebhookBench {
  readonly events: number;
  readonly cores: number;
  readonly queues: "redis" | "postgres";
  readonly postgres: Durability;
  readonly ingress: readonly IngressMeasured[];
  readonly ratios: readonly IngressRatio[];
  readonly applier: ApplierMeasured;
}

/** Not reported: on tables that have never been analysed, plans are guesses. */
const firstLoad = { sideBySide: 64, share: 0.05 } as const;

/** Many at once, then one at a time: the second is a fraction, since each waits for the one before. */
const loads = [
  { sideBySide: 64, share: 1 },
  { sideBySide: 1, share: 0.2 },
] as const;

/**
 * Deliveries to our ingress and to what others do, then the application of those that ours stored. Everything runs on
 * this machine with a PostgreSQL and a Redis of its own.
 * @throws FleetError where what is acknowledged, stored and applied does not add up
 */
export async function benchWebhooks(
  events: number,
  cleanup: Cleanup,
  progress: (text: string) => void,
): Promise<WebhookBench> {
  const scene = await openWebhookScene(cleanup);
  const postgres = await readDurability(scene.ledger);
  const kinds: IngressKind[] = [
    "transaction",
    ...(scene.redisUrl === undefined ? [] : ["queue.add" as const]),
    "countersign",
  ];
  progress("first rows");
  for (const kind of kinds)
    await measureIngress(scene, kind, { ...firstLoad, events: Math.ceil(events * firstLoad.share) });
  const ingress: IngressMeasured[] = [];
  for (const { sideBySide, share } of loads) {
    for (const kind of kinds) {
      progress(`${kind}, ${sideBySide} side by side`);
      ingress.push(await measureIngress(scene, kind, { sideBySide, events: Math.ceil(events * share) }));
    }
  }
  progress("applying");
  const applier = await measureApplier(scene);
  return {
    events,
    cores: availableParallelism(),
    queues: scene.redisUrl === undefined ? "postgres" : "redis",
    postgres,
    ingress,
    ratios: ratiosOf(ingress),
    applier,
  };
}

function ratiosOf(measured: readonly IngressMeasured[]): IngressRatio[] {
  const ours = measured.filter(({ what }) => what === "countersign");
  return ours.flatMap((our) =>
    measured.flatMap((other) => {
      if (other.what === "countersign" || other.sideBySide !== our.sideBySide) return [];
      const ratio = { perSecond: our.perSecond / other.perSecond, p50Ms: our.p50Ms / other.p50Ms };
      return [{ sideBySide: our.sideBySide, baseline: other.what, ...ratio }];
    }),
  );
}
