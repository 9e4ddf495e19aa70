import { setTimeout as pause } from "node:timers/promises";
import { type Connection, type Ledger, takePermits } from "@countersign/ledger";
import type { LookupCall, LookupResult, SignatureProvider } from "@countersign/provider";
import { newId } from "@countersign/runtime";

/** What one read at a provider showed. */
export type Reading =
  | {
      readonly kind: "answered";
      readonly by: "metadata" | "reference";
      readonly ms: number;
      readonly strangers: number;
    }
  /** `cause` is a code of the socket, or the provider's own machine code. */
  | { readonly kind: "failed"; readonly cause: string; readonly ms: number }
  | { readonly kind: "not-asked"; readonly cause: "no-lookup" | "no-permit" };

/** Longest wait for our own rate of the connection, ms. */
const permitWaitMs = 5_000;
const deadlineMs = 10_000;

/**
 * Asks the provider for a request that nobody has made: by our metadata or, where there is no such lookup, by a
 * reference. Only reads; nothing is written, sent or recorded anywhere. Takes its turn in the connection's own rate.
 */
export async function harmlessRead(
  ledger: Ledger,
  provider: SignatureProvider,
  connection: Connection & { credential: string },
): Promise<Reading> {
  const { lookup } = provider.capabilities.SEND;
  const byMetadata = lookup.byMetadata && connection.metadataLookup;
  if (!byMetadata && !lookup.byReference) return { kind: "not-asked", cause: "no-lookup" };
  const { baseUrl, credential } = connection;
  const call: LookupCall = { baseUrl, credential, deadlineMs, permit: () => permitted(ledger, connection) };
  if (byMetadata) {
    const query = { by: "metadata", tenantId: connection.tenantId, operationId: newId() } as const;
    const reading = readingOf("metadata", await provider.lookup(query, call));
    // The provider says in its own form that it has no such list: it is there, and takes the key.
    if (reading.kind !== "failed" || reading.cause !== "not_found" || !lookup.byReference) return reading;
  }
  return readingOf("reference", await provider.lookup({ by: "reference", ref: newId() }, call));
}

async function permitted(ledger: Ledger, connection: Connection): Promise<boolean> {
  const { tenantId, connectionId, ratePerSecond } = connection;
  if (ratePerSecond === null) return true;
  const block = { count: 1, perSecond: ratePerSecond, maxWaitMs: permitWaitMs };
  const permit = await takePermits(ledger, tenantId, connectionId, block);
  if (permit === undefined) return false;
  await pause(permit.waitMs);
  return true;
}

function readingOf(by: "metadata" | "reference", result: LookupResult): Reading {
  const { ms } = result;
  if (result.kind === "found") return { kind: "answered", by, ms, strangers: result.otherItems ?? 0 };
  if (result.kind === "not-found") return { kind: "answered", by, ms, strangers: 0 };
  return result.cause === "no-permit"
    ? { kind: "not-asked", cause: "no-permit" }
    : { kind: "failed", cause: result.cause, ms };
}

/** Nobody answered; everything else is an answer of some kind. */
export const isUnreachable = (cause: string): boolean =>
  /^(E[A-Z_]+|UND_ERR_\w+|CERT_\w+|ERR_(TLS|SSL)\w*|deadline|connect-timeout|bad-base-url|\w*SELF_SIGNED\w*)$/.test(
    cause,
  );

/** What to do about a read that failed. */
export function remedyFor({ tenantId, connectionId }: Connection, cause: string): string {
  if (/^(unauthorized|invalid_api_key|forbidden)$/.test(cause)) {
    return `the API key is refused: countersign connection set-key --tenant ${tenantId} --connection ${connectionId} --api-key-stdin`;
  }
  if (/^(rate_limited|\w*quota\w*|plan_required|payment_required)$/.test(cause)) {
    return "the provider's limit is used up: wait, or ask the provider for more";
  }
  if (isUnreachable(cause)) return "check the connection's base URL, the network and the provider's status page";
  return "the provider answers, but not as expected: see its status page, and try countersign connection test again";
}
