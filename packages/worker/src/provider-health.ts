import {
  type CircuitLimits,
  type Connection,
  type Ledger,
  noteProviderDown,
  noteProviderUp,
  pauseConnection,
} from "@countersign/ledger";
import type { LookupResult, Observation } from "@countersign/provider";
import type { Logger } from "@countersign/runtime";

/** Never left this house, or never asked: says nothing of the provider. */
const ownCauses = new Set([
  "aborted",
  "action-not-supported",
  "adapter-threw",
  "archive-unavailable",
  "bad-base-url",
  "bad-provider-key",
  "claim-gone",
  "connection-unreadable",
  "document-unreadable",
  "ledger-unreadable",
  "no-lookup",
  "no-permit",
  "no-target-reference",
  "settled",
  "unknown-provider",
  "unusable-reference",
  "write-guard-failed",
  "write-not-allowed",
]);

/** What a submission says of the provider: up (it answered), down (no answer, or a 5xx), or nothing. Pure. */
export function healthOf(observation: Observation): "up" | "down" | "nothing" {
  if (observation.kind === "not-sent") return ownCauses.has(observation.cause) ? "nothing" : "down";
  if (observation.kind !== "ambiguous") return "up";
  if (observation.httpStatus !== undefined) return observation.httpStatus >= 500 ? "down" : "up";
  return ownCauses.has(observation.cause) ? "nothing" : "down";
}

/** Causes of a failed lookup that are the provider's own answers. */
const answeredCauses = new Set(["not_found", "rate_limited", "unauthorized", "invalid_api_key", "forbidden"]);

/** What a lookup says of the provider. Pure. */
export function healthOfLookup(result: Pick<LookupResult, "kind"> & { cause?: string }): "up" | "down" | "nothing" {
  if (result.kind !== "failed") return "up";
  const cause = result.cause ?? "";
  if (ownCauses.has(cause)) return "nothing";
  return answeredCauses.has(cause) ? "up" : "down";
}

/** Longest pause that a RateLimit header may cause, ms. */
const longestResetMs = 60_000;

/**
 * Keeps a connection's circuit (DESIGN §6): a provider that is down is probed by a few, not hammered by every row. A
 * healthy connection costs nothing: only failures, and the first answer after them, are written.
 */
export class ProviderHealth {
  readonly #ledger: Ledger;
  readonly #limits: CircuitLimits;
  readonly #logger: Logger;

  constructor(ledger: Ledger, limits: CircuitLimits, logger: Logger) {
    this.#ledger = ledger;
    this.#limits = limits;
    this.#logger = logger;
  }

  /** Best effort: what it can't write, the next call will. */
  async note(connection: Connection, health: "up" | "down" | "nothing"): Promise<void> {
    const { tenantId, connectionId } = connection;
    try {
      if (health === "down") {
        const opened = await noteProviderDown(this.#ledger, tenantId, connectionId, this.#limits);
        if (opened) this.#logger.warn({ tenant: tenantId, connection: connectionId }, "provider down: circuit opened");
      } else if (health === "up" && (connection.circuitFailures > 0 || connection.circuitOpen)) {
        await noteProviderUp(this.#ledger, tenantId, connectionId);
      }
    } catch (error) {
      this.#logger.warn({ err: error, tenant: tenantId, connection: connectionId }, "circuit not written");
    }
  }

  /** The provider says that nothing is left of the rate: nobody calls before it says so. */
  rateLimit(connection: Connection): (limit: { remaining: number; resetMs: number }) => void {
    return ({ remaining, resetMs }) => {
      if (remaining > 0 || resetMs <= 0) return;
      const { tenantId, connectionId } = connection;
      pauseConnection(
        this.#ledger,
        tenantId,
        connectionId,
        "rate-limit-used-up",
        Math.min(resetMs, longestResetMs),
      ).catch((error: unknown) =>
        this.#logger.warn({ err: error, tenant: tenantId, connection: connectionId }, "pause not written"),
      );
    };
  }
}
