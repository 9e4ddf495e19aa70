import { shrunkProvider } from "../windows.js";
import type { Deal } from "./deal.js";

/** Faults after which nobody knows whether the request was made (`packages/simulator/src/fault-kinds.ts`). */
const ambiguousKinds = [
  "lost-response",
  "late-commit",
  "hang",
  "5xx-after-commit",
  "truncated-2xx",
  "5xx-before-commit",
  "slow-commit",
  "unparsable-2xx",
  "hang-after-commit",
  "reset-before-commit",
  "truncated-chunked",
  "empty-2xx",
] as const;

/** The simulator's options before anything goes wrong. */
export function calmProvider(latencyMs: number): object {
  return {
    latencyMs,
    workspaces: [],
    staleLockMs: shrunkProvider.staleLockMs,
    // Recipients only read, until everything that is to be voided has its VOID: one that comes after the last signature
    // is rightly left to a person, and how often that happens would depend on the machine's speed.
    life: { enabled: true, stepMs: shrunkProvider.lifeStepMs, completeRate: 0, declineRate: 0 },
    webhooks: { timeScale: 0.02 },
    faults: {
      slowCommitMs: shrunkProvider.slowCommitMs,
      slowCommitHoldMs: 10_000,
      lookupLagMs: shrunkProvider.lookupLagMs,
      webhookDelayMs: shrunkProvider.webhookDelayMs,
      retryAfterSeconds: 1,
    },
  };
}

/** The change that switches the faults on: those dealt, and those drawn on top of them. */
export function faultsOf(deal: Deal): object {
  if (deal.faults === 0) return {};
  return {
    faults: {
      dealFaults: { kinds: ambiguousKinds, count: deal.faults, among: deal.among },
      rates: {
        ...(deal.bursts ? { "429-burst": 0.01 } : {}),
        "lookup-fail": 0.05,
        "lookup-lag": 0.1,
        "lookup-hang": 0.01,
        "webhook-duplicate": 0.05,
        "webhook-out-of-order": 0.05,
        "webhook-delay": 0.05,
        "webhook-drop": 0.2,
      },
    },
  };
}

/** The change after which recipients sign or decline what is sent from then on. */
export const recipientsSign = { life: { completeRate: 0.8, declineRate: 0.05 } };

/** Some withdrawals lose their answer too: one in four. */
export function withdrawFaults(deal: Deal): object[] {
  const count = deal.faults === 0 ? 0 : Math.floor((deal.amendments + deal.voids) / 4);
  return Array.from({ length: count }, () => ({ kind: "lost-response", endpoint: "withdraw" }));
}
