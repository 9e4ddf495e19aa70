export { ApplyError, type ApplyOutcome, type ApplyParts, applyInboxEntry } from "./apply-event.js";
export { applyHandler, handleApplyJob } from "./apply-job.js";
export { applyConfig, ingressConfig } from "./config.js";
export { inboxCheck } from "./inbox-check.js";
export { buildIngress, type IngressOptions } from "./ingress.js";
export { type IngressMetrics, type IngressOutcome, ingressMetrics } from "./ingress-metrics.js";
export { type Answer, createReceiver, type ReceiveParts, SchemeUnknownError } from "./receive.js";
