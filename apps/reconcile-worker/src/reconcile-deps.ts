import type { Connection, DueJob, Ledger, NearMissKind } from "@countersign/ledger";
import type { LookupCall, SignatureProvider } from "@countersign/provider";
import type { Logger } from "@countersign/runtime";

export type OpenConnection = Connection & { credential: string };

/** What every part of this app works with; all times in ms. */
export interface ReconcileDeps {
  ledger: Ledger;
  provider(name: string): SignatureProvider | undefined;
  connection(tenantId: string, connectionId: string): Promise<OpenConnection>;
  handOver(jobs: DueJob[]): Promise<void>;
  logger: Logger;
  leaseMs: number;
  /** Deadline of one lookup, all its pages. */
  deadlineMs: number;
  marginMs: number;
  quiescenceMs: number;
  lookupLagMs: number;
  eventWaitMs: number;
  confirmations: number;
  spacingMs: number;
  absenceMaxAgeMs: number;
  pollMs: number;
  backoff: { baseMs: number; maxMs: number };
  /** The process whose heartbeat vouches for its claims; undefined: leases alone decide. */
  processId?: string;
  /** Waits for the connection's next permitted call; false where that would be later than `maxWaitMs`. */
  permit?(connection: Connection, maxWaitMs: number): Promise<boolean>;
  /** Told what every look says of the provider. */
  health?: {
    note(connection: Connection, health: "up" | "down" | "nothing"): Promise<void>;
    rateLimit(connection: Connection): (limit: { remaining: number; resetMs: number }) => void;
  };
  circuit: { failures: number; probeMs: number };
  /** Told of each pass, for metrics. */
  decided?(what: { action: string; verdict: string; state: string }): void;
  nearMiss?(kind: NearMissKind): void;
}

/** What a reconcile claim of a row is asked with. */
export const claimOf = (deps: ReconcileDeps, tenantId: string, operationId: string, owner: string) => ({
  tenantId,
  operationId,
  owner,
  leaseMs: deps.leaseMs,
  ...(deps.processId === undefined ? {} : { process: deps.processId }),
  actor: "reconcile-worker",
  reason: "looking",
});

/** How long a look waits for its permit before the row is left for later. */
const permitWaitMs = 20_000;

/** Everything a lookup over this connection needs but the question. */
export function lookupCall(deps: ReconcileDeps, connection: OpenConnection): LookupCall {
  const { permit, health, deadlineMs } = deps;
  return {
    baseUrl: connection.baseUrl,
    credential: connection.credential,
    deadlineMs,
    ...(permit === undefined ? {} : { permit: () => permit(connection, Math.min(permitWaitMs, deadlineMs)) }),
    ...(health === undefined ? {} : { onRateLimit: health.rateLimit(connection) }),
  };
}
