export {
  type AssembledBody,
  AssemblyError,
  type AssemblyFault,
  assembleBody,
  bodyDigest,
  documentsOf,
} from "./assemble.js";
export { type AnswerRow, classify, errorCode, type ReadAccepted } from "./classify.js";
export {
  type CallOutcome,
  type HttpCall,
  HttpTransport,
  type HttpTransportOptions,
  type ResponseHeaders,
} from "./http-call.js";
export type * from "./port.js";
export { usableReference } from "./reference.js";
export { createProviders, type Providers, providerByName, providers } from "./registry.js";
export { RETRY_AFTER_CAP_MS, retryAfterMs } from "./retry-after.js";
export { meansSent, signingStatusOf } from "./signing-status.js";
export { type JsonObject, parseStrictObject } from "./strict-json.js";
export { TwoStepProvider } from "./two-step/two-step.js";
export { MAX_EVENTS, splitEvents, TooManyEventsError } from "./webhooks/batch.js";
export { isHint, ownOperation } from "./webhooks/belief.js";
export { type Diagnosis, type DiagnosisSecrets, diagnoseDelivery } from "./webhooks/diagnose.js";
export { webhookContracts, webhookScheme, webhookSchemes } from "./webhooks/registry.js";
export type { EventFormat, ProofFault, ReadEvent, WebhookScheme } from "./webhooks/scheme.js";
export { WeSign } from "./wesign/wesign.js";
