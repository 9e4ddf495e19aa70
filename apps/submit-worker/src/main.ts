import { nearMissKinds, postgresDocumentStore } from "@countersign/ledger";
import { createProviders, HttpTransport } from "@countersign/provider";
import { loadConfig, settingsOrExit } from "@countersign/runtime";
import { connectionCache, handOver, runWorker } from "@countersign/worker";
import { cachedDocuments } from "./cached-documents.js";
import { submitConfig } from "./config.js";
import { submitOperation } from "./submit-operation.js";

const documentCacheBytes = 64 * 1024 * 1024;

const { SUBMIT_CONCURRENCY: concurrency } = settingsOrExit(() =>
  loadConfig(submitConfig, process.env, { name: "submit-worker" }),
);
const providers = createProviders(new HttpTransport({ connections: concurrency }));

runWorker({
  name: "submit-worker",
  queue: "submit",
  concurrency,
  handler: ({ ledger, queues, logger, metrics, windows, processId, permits, health }) => {
    const calls = metrics.histogram({
      name: "countersign_provider_call_seconds",
      help: "Time of one provider call, by action and what it proved",
      labels: ["action", "outcome"],
    });
    const nearMisses = metrics.counter({
      name: "countersign_near_misses_total",
      help: "Guards that worked: claims lost, senders that came too late and sent nothing",
      labels: ["kind"],
    });
    // From zero, so that a rule sees the first one.
    for (const kind of nearMissKinds) nearMisses.inc({ kind }, 0);
    const deps = {
      ledger,
      documents: cachedDocuments(postgresDocumentStore(ledger), documentCacheBytes),
      provider: providers.byName,
      connection: connectionCache(ledger),
      handOver: async (jobs: Parameters<typeof handOver>[1]) => {
        await handOver(queues, jobs);
      },
      logger,
      leaseMs: windows.LEASE_MS,
      deadlineMs: windows.PROVIDER_TIMEOUT_MS,
      marginMs: windows.LEASE_MARGIN_MS,
      observed: ({ action, outcome, ms }: { action: string; outcome: string; ms: number }) =>
        calls.observe({ action, outcome }, ms / 1000),
      nearMiss: (kind: string) => nearMisses.inc({ kind }),
      processId,
      permit: (connection: Parameters<typeof permits.take>[0], maxWaitMs: number) =>
        permits.take(connection, maxWaitMs),
      health,
      pollMs: windows.POLL_MS,
      circuitWaitMs: windows.CIRCUIT_PROBE_MS * 2,
    };
    return async (job) => {
      await submitOperation(deps, job.tenantId, job.subjectId);
    };
  },
  onStop: () => providers.close(),
});
