import { nearMissKinds } from "@countersign/ledger";
import { createProviders } from "@countersign/provider";
import { loadConfig, settingsOrExit } from "@countersign/runtime";
import { connectionCache, handOver, runWorker, serveLedgerGauges } from "@countersign/worker";
import { reconcileConfig } from "./config.js";
import type { ReconcileDeps } from "./reconcile-deps.js";
import { reconcileOperation } from "./reconcile-operation.js";
import { runWork } from "./run-work.js";

const config = settingsOrExit(() => loadConfig(reconcileConfig, process.env, { name: "reconcile-worker" }));
const providers = createProviders();

runWorker({
  name: "reconcile-worker",
  queue: "reconcile",
  retention: true,
  concurrency: config.RECONCILE_CONCURRENCY,
  handler: ({ ledger, queues, logger, metrics, windows, processId, permits, health }) => {
    serveLedgerGauges({ ledger, queues, metrics, logger });
    const verdicts = metrics.counter({
      name: "countersign_reconcile_verdicts_total",
      help: "Reconcile passes by action, verdict and the state they left",
      labels: ["action", "verdict", "state"],
    });
    const nearMisses = metrics.counter({
      name: "countersign_near_misses_total",
      help: "Guards that worked: verdicts refused because newer evidence had arrived",
      labels: ["kind"],
    });
    // From zero, so that a rule sees the first one.
    for (const kind of nearMissKinds) nearMisses.inc({ kind }, 0);
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
      marginMs: windows.LEASE_MARGIN_MS,
      pollMs: windows.POLL_MS,
      processId,
      permit: (connection, maxWaitMs) => permits.take(connection, maxWaitMs),
      health,
      circuit: { failures: windows.CIRCUIT_FAILURES, probeMs: windows.CIRCUIT_PROBE_MS },
      decided: (what) => verdicts.inc(what),
      nearMiss: (kind) => nearMisses.inc({ kind }),
    };
    return async (job) => {
      if (job.kind === "work") await runWork(deps, job.tenantId, job.subjectId);
      else await reconcileOperation(deps, job.tenantId, job.subjectId);
    };
  },
  onStop: () => providers.close(),
});
