import type { State } from "@countersign/ledger";
import type { ProviderAudit } from "../simulator-process.js";
import { countStates, type OperationRow } from "./operations.js";

/** Ways in which an UNKNOWN is settled, as the history names them. */
export const settlements = ["lookup", "webhook", "lateAnswer", "declined", "review"] as const;
export type Settlement = (typeof settlements)[number];

/** An operation that is not as it should be. */
export interface Finding {
  readonly kind: "duplicate" | "missing" | "wrong-void";
  readonly tenantId: string;
  readonly operationId: string;
  /** What is wrong, in words. */
  readonly problem: string;
}

/** What was meant against what the provider holds; the JSON line of `npm run demo -- --json` in this order. */
export interface DemoAudit {
  /** Planned SENDs, amendments included, that were not retired before they were sent. */
  readonly intents: number;
  /** Requests that the provider sent for them. */
  readonly providerRequests: number;
  readonly duplicates: number;
  readonly missing: number;
  readonly wrongVoids: number;
  /** Intents that passed through UNKNOWN. */
  readonly throughUnknown: number;
  /** How each of those was settled, the last time. */
  readonly settledBy: Readonly<Record<Settlement, number>>;
  /** All operations by state, VOIDs too. */
  readonly states: Partial<Record<State, number>>;
}

/** Statuses in which nobody was mailed. */
const notSent = ["staged", "discarded"];
const over = ["withdrawn", "completed", "declined", "expired"];

interface Books {
  readonly statusesOf: ReadonlyMap<string, readonly string[]>;
  /** SENDs with a CONFIRMED VOID of ours. */
  readonly voided: ReadonlySet<string>;
}

const keyOf = (tenantId: string, operationId: string): string => `${tenantId}/${operationId}`;

/**
 * Compares the ledger with the provider's own books. Pure. An operation may have one request, or none if it rightly
 * ended without; a withdrawn request needs a CONFIRMED VOID of ours, and a CONFIRMED VOID a request that is over.
 */
export function auditDemo(
  operations: readonly OperationRow[],
  provider: Pick<ProviderAudit, "operations" | "untagged">,
): { audit: DemoAudit; findings: Finding[] } {
  const sends = operations.filter(({ action }) => action === "SEND");
  const books = readBooks(operations, provider);
  const findings = [...strays(sends, provider), ...sends.flatMap((send) => [...examine(send, books)])];
  const intents = sends.filter((send) => !isRetired(send, books));
  const unknown = intents.filter(({ wasUnknown }) => wasUnknown);
  const settledBy = { lookup: 0, webhook: 0, lateAnswer: 0, declined: 0, review: 0 };
  for (const { settledBy: how } of unknown) {
    const known = settlements.find((settlement) => settlement === how);
    if (known !== undefined) settledBy[known] += 1;
  }
  const count = (kind: Finding["kind"]): number => findings.filter((finding) => finding.kind === kind).length;
  const requests = [...books.statusesOf.values()].reduce((sum, statuses) => sum + statuses.length, 0);
  const audit: DemoAudit = {
    intents: intents.length,
    providerRequests: requests + provider.untagged.requests,
    duplicates: count("duplicate") + provider.untagged.requests,
    missing: count("missing"),
    wrongVoids: count("wrong-void"),
    throughUnknown: unknown.length,
    settledBy,
    states: countStates(operations),
  };
  return { audit, findings };
}

function readBooks(operations: readonly OperationRow[], provider: Pick<ProviderAudit, "operations">): Books {
  const statusesOf = new Map(
    provider.operations.map(({ tenant, operationId, requests }) => [
      keyOf(tenant, operationId),
      requests.map(({ status }) => status).filter((status) => !notSent.includes(status)),
    ]),
  );
  const voided = new Set(
    operations.flatMap(({ action, state, tenantId, targetOperationId }) =>
      action === "VOID" && state === "CONFIRMED" && targetOperationId !== null
        ? [keyOf(tenantId, targetOperationId)]
        : [],
    ),
  );
  return { statusesOf, voided };
}

const statusesOf = (send: OperationRow, books: Books): readonly string[] =>
  books.statusesOf.get(keyOf(send.tenantId, send.operationId)) ?? [];

/** Amended or voided before its first attempt, with nothing at the provider: nobody was to be asked to sign. */
const isRetired = (send: OperationRow, books: Books): boolean =>
  send.state === "SUPERSEDED" && send.attemptNo === 0 && statusesOf(send, books).length === 0;

function* examine(send: OperationRow, books: Books): Generator<Finding> {
  const { tenantId, operationId, state } = send;
  const found = (kind: Finding["kind"], problem: string): Finding => ({ kind, tenantId, operationId, problem });
  const statuses = statusesOf(send, books);
  const ended = state === "SUPERSEDED" || state === "TERMINAL_FAILED";
  if (statuses.length > 1) yield found("duplicate", `${statuses.length} requests at the provider`);
  if (statuses.length === 0 && !ended) yield found("missing", `${state}, and no request at the provider`);
  const voided = books.voided.has(keyOf(tenantId, operationId));
  const live = statuses.filter((status) => !over.includes(status)).length;
  if (statuses.includes("withdrawn") && !voided)
    yield found("wrong-void", "withdrawn without a confirmed VOID of ours");
  if (live > 0 && voided) yield found("wrong-void", "live at the provider although its VOID is CONFIRMED");
  else if (live > 0 && ended) yield found("wrong-void", `live at the provider although it ended ${state}`);
  else if (live > 0 && send.supersededBy !== null)
    yield found("wrong-void", "replaced, and still live at the provider");
}

/** Requests under our metadata that no operation of the ledger stands for. */
function* strays(sends: readonly OperationRow[], provider: Pick<ProviderAudit, "operations">): Generator<Finding> {
  const known = new Set(sends.map(({ tenantId, operationId }) => keyOf(tenantId, operationId)));
  for (const { tenant, operationId, requests } of provider.operations) {
    if (requests.length === 0 || known.has(keyOf(tenant, operationId))) continue;
    yield { kind: "duplicate", tenantId: tenant, operationId, problem: "a request that no operation stands for" };
  }
}

/** Is the provider as it was meant to be? */
export function isClean({ duplicates, missing, wrongVoids }: DemoAudit): boolean {
  return duplicates === 0 && missing === 0 && wrongVoids === 0;
}
