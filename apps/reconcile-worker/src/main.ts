import { createProviders } from "@countersign/provider";
import { loadConfig } from "@countersign/runtime";
import { connectionCache, handOver, runWorker } from "@countersign/worker";
import { reconcileConfig } from "./config.js";
import { type ReconcileDeps, reconcileOperation } from "./reconcile-operation.js";

const config = loadConfig(reconcileConfig, process.env, { name: "reconcile-worker" });
const providers = createProviders();

runWorker({
  name: "reconcile-worker",
  queue: "reconcile",
  concurrency: config.RECONCILE_CONCURRENCY,
  handler: ({ ledger, queues, logger, metrics, windows }) => {
    const verdicts = metrics.counter({
      name: "countersign_reconcile_verdicts_total",
      help: "Reconcile passes by action, verdict and the state they left",
      labels: ["action", "verdict", "state"],
    });
    const deps: ReconcileDeps = {
      ledger,
      provider: providers.byName,
      connection: connectionCache(ledger),
      handOver: async (jobs) => {
        await handOver(queues, jobs);
      },
      logger,
      leaseMs: windows.LEASE_MS,
      deadlineMs: windows.PROVIDER_TIMEOUT_MS,
      quiescenceMs: windows.QUIESCENCE_MS,
      lookupLagMs: windows.LOOKUP_LAG_MS,
      eventWaitMs: windows.EVENT_WAIT_MS,
      confirmations: windows.ABSENCE_CONFIRMATIONS,
      spacingMs: windows.ABSENCE_SPACING_MS,
      absenceMaxAgeMs: config.ABSENCE_MAX_AGE_MS,
      backoff: { baseMs: windows.RECONCILE_BACKOFF_MS, maxMs: windows.RECONCILE_BACKOFF_MAX_MS },
      decided: (what) => verdicts.inc(what),
    };
    return async (job) => {
      await reconcileOperation(deps, job.tenantId, job.subjectId);
    };
  },
  onStop: () => providers.close(),
});
