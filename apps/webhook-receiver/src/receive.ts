import { type DueJob, type Endpoint, type Ledger, openEndpoint, recordDelivery } from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import type { Logger } from "@countersign/runtime";
import { EndpointCache } from "./endpoint-cache.js";
import type { IngressMetrics, IngressOutcome } from "./ingress-metrics.js";
import { type Headers, readDelivery } from "./read-delivery.js";

export interface ReceiveParts {
  readonly ledger: Ledger;
  providerByName(name: string): SignatureProvider | undefined;
  /** Hands the applier's job over after the commit; best effort. */
  handOff(job: DueJob): Promise<{ failed: number }>;
  readonly logger: Logger;
  readonly metrics: IngressMetrics;
  readonly endpointCacheMs: number;
  /** Unix time in ms, for the freshness window only. */
  now?(): number;
}

/** What is answered to a delivery; the text says nothing that a stranger could use. */
export interface Answer {
  readonly status: 200 | 401 | 404;
  readonly outcome: IngressOutcome;
}

/** The endpoint's connection names an adapter or scheme that this process doesn't have. */
export class SchemeUnknownError extends Error {
  override readonly name = "SchemeUnknownError";
  readonly code = "scheme-unknown";
  readonly safeMessage = "this process knows no verifier for the endpoint's provider and scheme";
}

// The shape of the ids that the ledger makes: a guess of another shape costs no read.
const endpointIdShape = /^we_[A-Za-z0-9_-]{32}$/;

/** Whether a path could name an endpoint at all. */
export const couldBeEndpoint = (endpointId: string): boolean => endpointIdShape.test(endpointId);

/**
 * Takes one delivery: verify the bytes as they came, then parse, then store in one statement. Resolves only after the
 * commit (a 2xx is a promise); whatever rejects here is answered 503, so that the sender tries again.
 */
export function createReceiver(parts: ReceiveParts): (id: string, body: Buffer, headers: Headers) => Promise<Answer> {
  const { ledger, logger, metrics } = parts;
  const now = parts.now ?? Date.now;
  const endpoints = new EndpointCache((id) => openEndpoint(ledger, id), { ttlMs: parts.endpointCacheMs });
  return async (endpointId, body, headers) => {
    const endpoint = await endpoints.get(endpointId);
    if (endpoint === undefined) return { status: 404, outcome: "unknown-endpoint" };
    const contract = parts.providerByName(endpoint.provider)?.webhooks[endpoint.scheme];
    if (contract === undefined) throw new SchemeUnknownError();
    const verified = contract.verify(body, headers, endpoint.secrets, now());
    if (!verified.ok) {
      metrics.refused.inc({ reason: verified.reason });
      const { tenantId: tenant, connectionId: connection } = endpoint;
      logger.warn({ tenant, connection, reason: verified.reason }, "webhook refused");
      return { status: 401, outcome: "unauthorized" };
    }
    const delivery = readDelivery(endpoint, contract, body, headers);
    if (delivery.flagged === true) metrics.headerIdDiffers.inc();
    const recorded = await recordDelivery(ledger, delivery);
    if (recorded.kind === "duplicate") return { status: 200, outcome: "duplicate" };
    if (!recorded.quarantined) handOff(parts, endpoint, recorded.inboxId);
    return { status: 200, outcome: storedAs(recorded) };
  };
}

function storedAs(recorded: { quarantined: boolean; conflicting: boolean }): IngressOutcome {
  if (recorded.quarantined) return "quarantined";
  return recorded.conflicting ? "conflicting" : "stored";
}

/** Not awaited: the row is due, so the due loop finds whatever a dead Redis loses here. */
function handOff({ handOff: give, metrics, logger }: ReceiveParts, endpoint: Endpoint, inboxId: string): void {
  const job: DueJob = {
    queue: "webhook-apply",
    tenantId: endpoint.tenantId,
    kind: "inbox",
    subjectId: inboxId,
    eventNo: 0,
    dispatches: 0,
  };
  give(job).then(
    ({ failed }) => metrics.handOff.inc({ outcome: failed === 0 ? "added" : "failed" }),
    (error: unknown) => {
      metrics.handOff.inc({ outcome: "failed" });
      logger.warn({ err: error, tenant: job.tenantId }, "hand-off failed: the due loop will find the event");
    },
  );
}
