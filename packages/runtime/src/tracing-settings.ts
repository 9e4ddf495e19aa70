import type { Environment } from "./config.js";

/**
 * Whether the environment asks for traces: an OTLP endpoint is named, or the exporter `otlp` is. `unsupported`: it asks for a
 * form that is not sent from here.
 */
export function tracesWanted(env: Environment): "yes" | "no" | "unsupported" {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true") return "no";
  const exporter = env.OTEL_TRACES_EXPORTER ?? "";
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT || "";
  if (exporter === "none" || (exporter === "" && endpoint === "")) return "no";
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || "";
  const other = exporter !== "" && exporter !== "otlp";
  return other || protocol.startsWith("grpc") ? "unsupported" : "yes";
}
