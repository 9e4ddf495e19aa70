import type { Connection, TransitionRow } from "@countersign/ledger";
import { getReferences, type Ledger } from "@countersign/ledger";
import type { LookupResult, ObservationKind, SignatureProvider } from "@countersign/provider";
import type { Capabilities, EvidenceFound, KnownReference } from "./decide.js";

export interface Asking {
  ledger: Ledger;
  provider: SignatureProvider;
  connection: Connection & { credential: string };
  /** Deadline of one lookup, all its pages, ms. */
  deadlineMs: number;
}

const observationKinds: readonly ObservationKind[] = [
  "accepted",
  "queued",
  "refused",
  "declined",
  "conflict",
  "not-sent",
  "ambiguous",
];

function lastObservation(row: TransitionRow): EvidenceFound["lastObservation"] {
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

/** What this connection's lookups may prove. */
export function capabilitiesOf(row: TransitionRow, { provider, connection }: Asking): Capabilities {
  const { lookup } = provider.capabilities[row.action];
  const byReference = row.action === "VOID" && lookup.byReference;
  return {
    canLookUp: byReference || (lookup.byMetadata && connection.metadataLookup),
    mayProveAbsence: lookup.documented || connection.lookupVerifiedAt !== null,
  };
}

/**
 * Asks along the strongest path there is (DESIGN §6): what is on record first, then the provider by a stored reference,
 * then by our own metadata. Asks nothing where the record of every attempt already answers.
 */
export async function gatherEvidence(row: TransitionRow, asking: Asking): Promise<EvidenceFound> {
  const references = (await getReferences(asking.ledger, row.tenant_id, row.operation_id)).map(
    ({ providerRef, role, source }): KnownReference => ({ ref: providerRef, role: roleOf(role), source }),
  );
  const observation = lastObservation(row);
  const known = {
    action: row.action,
    references,
    openAttempts: row.open_attempts,
    attemptNo: row.attempt_no,
    referencesSeen: row.references_seen,
    lastObservation: observation,
    targetRef: row.target_ref ?? undefined,
  };
  const allClosed = row.open_attempts === 0 && row.references_seen === 0 && observation?.kind !== "conflict";
  return { ...known, lookup: allClosed ? undefined : await lookUp(row, references, asking) };
}

async function lookUp(
  row: TransitionRow,
  references: readonly KnownReference[],
  asking: Asking,
): Promise<EvidenceFound["lookup"]> {
  const { provider, connection } = asking;
  const { lookup } = provider.capabilities[row.action];
  const call = { baseUrl: connection.baseUrl, credential: connection.credential, deadlineMs: asking.deadlineMs };
  const guarded = async (work: Promise<LookupResult>): Promise<LookupResult> => {
    try {
      return await work;
    } catch {
      return { kind: "failed", cause: "adapter-threw", ms: 0 };
    }
  };
  if (row.action === "VOID") {
    if (row.target_ref === null || !lookup.byReference) return undefined;
    return { by: "reference", result: await guarded(provider.lookup({ by: "reference", ref: row.target_ref }, call)) };
  }
  const [first] = references;
  // A webhook or a late answer already shows it; the lookup would only repeat that.
  if (
    references.length === 1 &&
    first !== undefined &&
    (first.source === "webhook" || first.source === "late-answer")
  ) {
    return undefined;
  }
  if (first !== undefined && lookup.byReference) {
    return { by: "reference", result: await guarded(provider.lookup({ by: "reference", ref: first.ref }, call)) };
  }
  if (!lookup.byMetadata || !connection.metadataLookup) return undefined;
  return {
    by: "metadata",
    result: await guarded(
      provider.lookup({ by: "metadata", tenantId: row.tenant_id, operationId: row.operation_id }, call),
    ),
  };
}
