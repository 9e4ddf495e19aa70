import type { Endpoint } from "./fault-kinds.js";
import type { FaultPlan, Subject } from "./fault-plan.js";
import { type RequestStatus, type SigningRequest, wasSent } from "./signing-request.js";
import type { World } from "./world.js";

/** What one operation of one tenant led to. */
export interface OperationAudit {
  /** `metadata.tenant`, or the workspace's name where there is none. */
  readonly tenant: string;
  readonly operationId: string;
  /** Every request that carries this operation's metadata, drafts included, in order of creation. */
  readonly requests: { id: string; documentId: string; status: RequestStatus }[];
  /** Mails to recipients: invitations and reminders. */
  mails: number;
  reminders: number;
  withdrawals: number;
  /** Submissions (send, instantiate) that reached the server, whatever became of them: the only honest measure. */
  readonly arrivals: number;
  /** Calls that reached the server, by endpoint. */
  readonly calls: Readonly<Partial<Record<Endpoint, number>>>;
}

export interface AuditTotals {
  /** Requests that were sent. */
  requests: number;
  /** Staged or discarded documents: never sent. */
  drafts: number;
  mails: number;
  reminders: number;
  withdrawals: number;
  arrivals: number;
}

/** The provider's own count of what it holds: what reached it, what it made of it. */
export interface AuditReport {
  readonly totals: AuditTotals;
  readonly operations: OperationAudit[];
  /** Part of the totals: what came without an operation id. `arrivals` includes calls cut or refused before their body. */
  readonly untagged: AuditTotals;
  /** Outside the totals: tagged `metadata.sandbox = "true"`. */
  readonly sandbox: AuditTotals;
  readonly faults: ReturnType<FaultPlan["report"]>;
}

interface Calls {
  readonly tenant: string;
  readonly operationId: string;
  readonly byEndpoint: Map<Endpoint, number>;
}

const SUBMISSIONS: readonly Endpoint[] = ["send", "instantiate"];

function noTotals(): AuditTotals {
  return { requests: 0, drafts: 0, mails: 0, reminders: 0, withdrawals: 0, arrivals: 0 };
}

function addRequest(totals: AuditTotals, request: SigningRequest): void {
  if (wasSent(request)) totals.requests += 1;
  else totals.drafts += 1;
  totals.mails += request.mails;
  totals.reminders += request.reminders;
  totals.withdrawals += request.withdrawals;
}

function operationKey(tenant: string, operationId: string): string {
  return JSON.stringify([tenant, operationId]);
}

/** Counts calls as they arrive; everything else is read from the world when it is asked for. */
export class Audit {
  readonly #calls = new Map<string, Calls>();
  readonly #maxOperations: number;
  #untaggedArrivals = 0;
  #sandboxArrivals = 0;

  constructor(maxOperations: number) {
    this.#maxOperations = maxOperations;
  }

  /** Counts a call; answers how many times its operation has called this endpoint, from 1. */
  arrive(endpoint: Endpoint, workspace: string, subject: Subject): number {
    const isSubmission = SUBMISSIONS.includes(endpoint);
    if (subject.sandbox) {
      if (isSubmission) this.#sandboxArrivals += 1;
      return 1;
    }
    const calls = subject.operationId === undefined ? undefined : this.#of(workspace, subject, subject.operationId);
    if (calls === undefined) {
      if (isSubmission) this.#untaggedArrivals += 1;
      return 1;
    }
    const count = (calls.byEndpoint.get(endpoint) ?? 0) + 1;
    calls.byEndpoint.set(endpoint, count);
    return count;
  }

  report(world: World, faults: FaultPlan): AuditReport {
    const totals = noTotals();
    const untagged = { ...noTotals(), arrivals: this.#untaggedArrivals };
    const sandbox = { ...noTotals(), arrivals: this.#sandboxArrivals };
    const operations = new Map<string, OperationAudit>();
    for (const calls of this.#calls.values()) {
      operations.set(operationKey(calls.tenant, calls.operationId), newOperation(calls));
    }
    for (const request of world.all()) {
      const { operationId, tenant = request.workspace } = request.subject;
      if (request.subject.sandbox) {
        addRequest(sandbox, request);
        continue;
      }
      addRequest(totals, request);
      if (operationId === undefined) {
        addRequest(untagged, request);
        continue;
      }
      const key = operationKey(tenant, operationId);
      const operation = operations.get(key) ?? newOperation({ tenant, operationId, byEndpoint: new Map() });
      operations.set(key, operation);
      operation.requests.push({ id: request.id, documentId: request.documentId, status: request.status });
      operation.mails += request.mails;
      operation.reminders += request.reminders;
      operation.withdrawals += request.withdrawals;
    }
    for (const { arrivals } of operations.values()) totals.arrivals += arrivals;
    totals.arrivals += untagged.arrivals;
    return { totals, operations: [...operations.values()], untagged, sandbox, faults: faults.report() };
  }

  #of(workspace: string, { tenant = workspace }: Subject, operationId: string): Calls | undefined {
    const key = operationKey(tenant, operationId);
    const known = this.#calls.get(key);
    if (known !== undefined) return known;
    if (this.#calls.size >= this.#maxOperations) return undefined;
    const fresh = { tenant, operationId, byEndpoint: new Map() };
    this.#calls.set(key, fresh);
    return fresh;
  }
}

function newOperation({ tenant, operationId, byEndpoint }: Calls): OperationAudit {
  const arrivals = SUBMISSIONS.reduce((sum, endpoint) => sum + (byEndpoint.get(endpoint) ?? 0), 0);
  const calls = Object.fromEntries(byEndpoint);
  return { tenant, operationId, requests: [], mails: 0, reminders: 0, withdrawals: 0, arrivals, calls };
}
