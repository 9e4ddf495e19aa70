export { connectionCache } from "./connection-cache.js";
export { type DueLoop, type DueLoopOptions, type DuePass, startDueLoop, visitDue } from "./due-loop.js";
export { handOver, toDispatch } from "./hand-over.js";
export { runWorker, type WorkerParts, type WorkerProcess, workerConfig } from "./run-worker.js";
