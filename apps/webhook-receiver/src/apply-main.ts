import { providerByName } from "@countersign/provider";
import { loadConfig, settingsOrExit } from "@countersign/runtime";
import { handOver, runWorker } from "@countersign/worker";
import { applyHandler } from "./apply-job.js";
import { applyConfig } from "./config.js";

const name = "webhook-apply";
const config = settingsOrExit(() => loadConfig(applyConfig, process.env, { name }));

runWorker({
  name,
  queue: "webhook-apply",
  concurrency: config.WEBHOOK_APPLY_CONCURRENCY,
  handler: ({ ledger, queues, logger, metrics, windows }) =>
    applyHandler(
      {
        ledger,
        providerByName,
        handOff: (job) => handOver(queues, [job]),
        logger,
        eventWaitMs: windows.EVENT_WAIT_MS,
      },
      metrics,
    ),
});
