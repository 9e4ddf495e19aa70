import type { Connection, TransitionRow } from "@countersign/ledger";
import { getReferences, type Ledger, openPayload } from "@countersign/ledger";
import type {
  LookupCall,
  LookupQuery,
  LookupResult,
  Match,
  ObservationKind,
  SignatureProvider,
} from "@countersign/provider";
import type { Logger } from "@countersign/runtime";
import { askProvider, type Look } from "./ask-provider.js";
import { readsByReference } from "./capabilities.js";
import type { EvidenceFound, KnownReference } from "./verdict.js";

export interface Asking {
  ledger: Ledger;
  provider: SignatureProvider;
  connection: Connection & { credential: string };
  /** Everything a lookup needs but the question: base URL, credential, deadline of all its pages, permits. */
  call: LookupCall;
  /** What one list for many has already said of this row. */
  listed?: LookupResult;
  logger: Logger;
}

const observationKinds: readonly ObservationKind[] = [
  "accepted",
  "queued",
  "refused",
  "declined",
  "conflict",
  "not-yet",
  "not-sent",
  "ambiguous",
];

export function lastObservation(row: TransitionRow): EvidenceFound["lastObservation"] {
  const stored = row.last_observation;
  if (stored === null) return undefined;
  const kind = observationKinds.find((known) => known === stored.kind);
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(typeof stored.code === "string" ? { code: stored.code } : {}),
    ...(typeof stored.retryAfterMs === "number" ? { retryAfterMs: stored.retryAfterMs } : {}),
  };
}

const roleOf = (role: string): KnownReference["role"] =>
  role === "kept" || role === "extra" || role === "draft" ? role : "evidence";

/**
 * Asks along the strongest path there is (DESIGN §6): what is on record first, then the provider by a stored reference,
 * then by our own metadata. Asks nothing where the record of every attempt already answers.
 */
export async function gatherEvidence(row: TransitionRow, asking: Asking): Promise<EvidenceFound> {
  const references =
    row.action === "SEND"
      ? (await getReferences(asking.ledger, row.tenant_id, row.operation_id)).map(
          ({ providerRef, role, source }): KnownReference => ({ ref: providerRef, role: roleOf(role), source }),
        )
      : [];
  const lookup = await lookUp(row, references, asking);
  return {
    action: row.action,
    references,
    openAttempts: row.open_attempts,
    attemptNo: row.attempt_no,
    referencesSeen: row.references_seen,
    lastObservation: lastObservation(row),
    lookup,
    targetRef: row.target_ref ?? undefined,
    superseded: row.superseded_by !== null,
    stageOnly: hasOnlyDrafts(lookup?.result) && (await asksOnlyToStage(row, asking)),
  };
}

/** Every attempt's record says that it left nothing: the provider need not be asked. */
export function isClosed(row: TransitionRow): boolean {
  return row.open_attempts === 0 && row.references_seen === 0 && lastObservation(row)?.kind !== "conflict";
}

const isDraft = ({ status }: Match): boolean => status === "staged" || status === "draft";
const hasOnlyDrafts = (result: LookupResult | undefined): boolean =>
  result?.kind === "found" && result.matches.length > 0 && result.matches.every(isDraft);

async function asksOnlyToStage(row: TransitionRow, { ledger }: Asking): Promise<boolean> {
  const payload = await openPayload(ledger, row.tenant_id, row.operation_id);
  return payload?.stageOnly === true;
}

async function lookUp(
  row: TransitionRow,
  references: readonly KnownReference[],
  asking: Asking,
): Promise<EvidenceFound["lookup"]> {
  switch (row.action) {
    case "SEND":
      return isClosed(row) ? undefined : await lookUpSend(row, references, asking);
    case "VOID":
      return isClosed(row) ? undefined : await readTarget(row, asking);
    case "RESEND":
      return lastObservation(row)?.kind === "conflict" ? await readTarget(row, asking) : undefined;
    case "FINALIZE":
      return await readTarget(row, asking);
  }
}

async function lookUpSend(
  row: TransitionRow,
  references: readonly KnownReference[],
  asking: Asking,
): Promise<EvidenceFound["lookup"]> {
  const { provider, connection, listed } = asking;
  const { lookup } = provider.capabilities.SEND;
  const [first, ...more] = references;
  // A webhook or a late answer already shows it; the lookup would only repeat that.
  const shown =
    first !== undefined && first.role !== "draft" && (first.source === "webhook" || first.source === "late-answer");
  if (shown && more.length === 0) return undefined;
  if (first !== undefined && more.length === 0 && lookup.byReference) {
    return await ask(row, asking, { by: "reference", ref: first.ref });
  }
  if (listed !== undefined) return { by: "list", result: listed };
  if (!lookup.byMetadata || !connection.metadataLookup) return undefined;
  return await ask(row, asking, { by: "metadata", tenantId: row.tenant_id, operationId: row.operation_id });
}

async function readTarget(row: TransitionRow, asking: Asking): Promise<EvidenceFound["lookup"]> {
  if (row.target_ref === null || !readsByReference(asking.provider)) return undefined;
  return await ask(row, asking, { by: "reference", ref: row.target_ref });
}

async function ask(row: TransitionRow, { provider, call, logger }: Asking, query: LookupQuery) {
  const look: Look = {
    tenant: row.tenant_id,
    operation: row.operation_id,
    attempt: row.attempt_no,
    connection: row.connection_id,
    kind: query.by,
  };
  return { by: query.by, result: await askProvider(logger, look, () => provider.lookup(query, call)) };
}
