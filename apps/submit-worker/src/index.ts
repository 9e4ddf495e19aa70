export { cachedDocuments } from "./cached-documents.js";
export { type Clocks, LeaseClock } from "./lease-clock.js";
export { type SubmitDeps, type SubmitOutcome, submitOperation } from "./submit-operation.js";
