import { postgresDocumentStore } from "@countersign/ledger";
import { createProviders, HttpTransport } from "@countersign/provider";
import { loadConfig } from "@countersign/runtime";
import { connectionCache, handOver, runWorker } from "@countersign/worker";
import { cachedDocuments } from "./cached-documents.js";
import { submitConfig } from "./config.js";
import { submitOperation } from "./submit-operation.js";

const documentCacheBytes = 64 * 1024 * 1024;

const { SUBMIT_CONCURRENCY: concurrency } = loadConfig(submitConfig, process.env, { name: "submit-worker" });
const providers = createProviders(new HttpTransport({ connections: concurrency }));

runWorker({
  name: "submit-worker",
  queue: "submit",
  concurrency,
  handler: ({ ledger, queues, logger, metrics, windows }) => {
    const calls = metrics.histogram({
      name: "countersign_provider_call_seconds",
      help: "Time of one provider call, by action and what it proved",
      labels: ["action", "outcome"],
    });
    const nearMisses = metrics.counter({
      name: "countersign_near_misses_total",
      help: "Senders that woke after their lease and sent nothing",
    });
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
      nearMiss: () => nearMisses.inc(),
    };
    return async (job) => {
      await submitOperation(deps, job.tenantId, job.subjectId);
    };
  },
  onStop: () => providers.close(),
});
