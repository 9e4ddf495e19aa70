export { type BackoffOptions, backoffMs } from "./backoff.js";
export { CanonicalJsonError, canonicalJson, sha256 } from "./canonical-json.js";
export {
  type Config,
  ConfigError,
  type ConfigProblem,
  type ConfigShape,
  type Environment,
  loadConfig,
  settingsOrExit,
} from "./config.js";
export {
  type Check,
  CheckFailed,
  type CheckResult,
  type HealthOptions,
  type HealthServer,
  type Readiness,
  readiness,
  startHealthServer,
} from "./health.js";
export { intentKey, newId, operationId, tenantId } from "./ids.js";
export { type ProcessOptions, runProcess } from "./lifecycle.js";
export { createLogger, type LogDestination, type Logger, type LoggerOptions, loggingFailures } from "./logger.js";
export { createMetrics, type HistogramOptions, type MetricOptions, type Metrics } from "./metrics.js";
export {
  type Action,
  actions,
  type NeutralPayload,
  type NeutralPayloadInput,
  neutralPayload,
  sha256Hex,
  type TargetPayload,
  targetPayload,
} from "./neutral-payload.js";
export { type LogField, type LogFields, type SafeError, safeError } from "./redaction.js";
export {
  booleanSetting,
  checkWindows,
  commonConfig,
  integerSetting,
  portSetting,
  urlSetting,
  type Windows,
  windows,
} from "./settings.js";
export {
  type JsonValue,
  maxJsonDepth,
  parseStrictJson,
  StrictJsonError,
  type StrictJsonReason,
} from "./strict-json.js";
export {
  inSpan,
  type MeasuredSpan,
  type OpenSpan,
  recordSpan,
  type SpanFacts,
  type SpanName,
  type SpanStart,
  startTracing,
  stopTracing,
  traceparentOf,
  withinTrace,
} from "./tracing.js";
export { tracesWanted } from "./tracing-settings.js";
