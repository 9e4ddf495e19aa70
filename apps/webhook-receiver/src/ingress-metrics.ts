import type { Metrics } from "@countersign/runtime";

/** What became of a delivery at the door. A closed set: it is a metric label. */
export const ingressOutcomes = [
  "stored",
  "quarantined",
  "duplicate",
  "conflicting",
  "empty",
  "unknown-endpoint",
  "unauthorized",
  "unsupported",
  "too-large",
  "bad-request",
  "overloaded",
  "late",
  "failed",
] as const;
export type IngressOutcome = (typeof ingressOutcomes)[number];

/** The ingress's counters. */
export function ingressMetrics(metrics: Metrics) {
  const made = {
    deliveries: metrics.counter<"outcome">({
      name: "countersign_webhook_deliveries_total",
      help: "Webhook deliveries at the ingress, by outcome",
      labels: ["outcome"],
    }),
    events: metrics.counter<"outcome">({
      name: "countersign_webhook_events_total",
      help: "Events of verified deliveries, by how they were stored; a delivery may carry several",
      labels: ["outcome"],
    }),
    refused: metrics.counter<"reason">({
      name: "countersign_webhook_refused_total",
      help: "Deliveries whose signature was refused, by reason; timestamp-out-of-window is a genuine one that is old, or a clock that is off",
      labels: ["reason"],
    }),
    headerIdDiffers: metrics.counter({
      name: "countersign_webhook_header_id_differs_total",
      help: "Deliveries whose unsigned id header said something else than the signed body",
    }),
    handOff: metrics.counter<"outcome">({
      name: "countersign_webhook_hand_off_total",
      help: "Jobs handed over after the commit; a failed one is found by the due loop",
      labels: ["outcome"],
    }),
    seconds: metrics.histogram({
      name: "countersign_webhook_ack_seconds",
      help: "Time from the head of a delivery to its answer",
    }),
  };
  // From zero, so that a rule sees the first one.
  for (const outcome of ingressOutcomes) made.deliveries.inc({ outcome }, 0);
  for (const outcome of ["added", "failed"]) made.handOff.inc({ outcome }, 0);
  return made;
}

export type IngressMetrics = ReturnType<typeof ingressMetrics>;
