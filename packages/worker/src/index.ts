export { connectionCache } from "./connection-cache.js";
export { type DueLoop, type DueLoopOptions, type DuePass, startDueLoop, visitDue } from "./due-loop.js";
export { handOver, toDispatch } from "./hand-over.js";
export { type LedgerGaugesOptions, serveLedgerGauges } from "./ledger-gauges.js";
export { Permits } from "./permits.js";
export { healthOf, healthOfLookup, ProviderHealth } from "./provider-health.js";
export { runWorker, type WorkerParts, type WorkerProcess, workerConfig } from "./run-worker.js";
