import { type PlanningParts, planningParts, preparePlan } from "@countersign/client/transaction";
import { type Ledger, type PlanOutcome, plan, postgresDocumentStore } from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import { type NeutralPayloadInput, neutralPayload, sha256 } from "@countersign/runtime";
import { UsageError } from "./errors.js";

/** Finds an adapter. */
export type ProviderByName = (name: string) => SignatureProvider | undefined;

export interface SendRequest {
  readonly tenantId: string;
  readonly intentKey: string;
  /** The tenant's only or default one when left out. */
  readonly connectionId?: string;
  /** Uploaded first; put in front of the payload's own. */
  readonly files?: readonly { bytes: Uint8Array; fileName?: string }[];
  readonly payload: NeutralPayloadInput;
  readonly supersedes?: { readonly operationId: string; readonly mode: "void-first" | "send-first" };
  readonly requestedBy?: string;
  readonly approvedBy?: string;
}

/**
 * Records a SEND exactly as the enqueuer does: payload normalised, request prepared by the adapter, documents stored, and
 * one plan. Its row is due at once; a worker's due loop finds it.
 *
 * @throws UsageError naming the payload field, and the ledger's PlanRefusedError and NotFoundError
 */
export async function planSend(ledger: Ledger, providers: ProviderByName, request: SendRequest): Promise<PlanOutcome> {
  const { tenantId } = request;
  const files = (request.files ?? []).map((file) => ({ ...file, sha256: checkedDigest(file.bytes) }));
  const payload = readPayload(request.payload, files);
  await ledger.tenantKey(tenantId);
  const parts = partsOf(ledger, providers);
  const own = new Map(files.map((file) => [file.sha256, file.bytes]));
  const prepared = await preparePlan(
    { ...parts, document: async (tenant, digest) => own.get(digest) ?? (await parts.document(tenant, digest)) },
    {
      tenantId,
      intentKey: request.intentKey,
      action: "SEND",
      payload,
      connection: request.connectionId,
      supersedes: request.supersedes,
      requestedBy: request.requestedBy,
      approvedBy: request.approvedBy,
    },
  );
  const store = postgresDocumentStore(ledger);
  for (const file of files) await store.put(tenantId, file.bytes);
  return await plan(ledger, prepared);
}

export interface VoidTarget {
  readonly tenantId: string;
  readonly intentKey: string;
  /** The SEND to void, and its connection. */
  readonly operationId: string;
  readonly connectionId: string;
  readonly requestedBy?: string;
  readonly approvedBy?: string;
}

/** Records a VOID of a SEND; it waits for the target's own end where that is open. @throws like {@link planSend} */
export async function planVoid(ledger: Ledger, providers: ProviderByName, target: VoidTarget): Promise<PlanOutcome> {
  const { connectionId, operationId, ...common } = target;
  const prepared = await preparePlan(partsOf(ledger, providers), {
    ...common,
    action: "VOID",
    connection: connectionId,
    target: { operationId },
  });
  return await plan(ledger, prepared);
}

const partsOf = (ledger: Ledger, providers: ProviderByName): PlanningParts => ({
  ...planningParts(ledger),
  provider: providers,
});

function readPayload(input: NeutralPayloadInput, files: readonly { sha256: string; fileName?: string }[]) {
  const own = files.map(({ sha256: digest, fileName }) => ({
    sha256: digest,
    ...(fileName === undefined ? {} : { fileName }),
  }));
  const result = neutralPayload.safeParse({ ...input, documents: [...own, ...(input.documents ?? [])] });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new UsageError(`${optionOf(issue?.path ?? [])} ${issue?.message ?? "is not valid"}`);
}

/** `signers.1.email` → `--signer 2 email`; other fields by their path. */
function optionOf(path: readonly PropertyKey[]): string {
  const [field, index, ...rest] = path;
  if (field !== "signers" || typeof index !== "number") return path.map(String).join(".");
  return ["--signer", index + 1, ...rest.map(String)].join(" ");
}

const maxDocumentBytes = 50 * 1024 * 1024;

function checkedDigest(bytes: Uint8Array): string {
  if (bytes.length === 0) throw new UsageError("--file is empty; name a PDF");
  if (bytes.length > maxDocumentBytes) throw new UsageError("--file is larger than 50 MiB; name a smaller PDF");
  // Readers accept some bytes before the header (ISO 32000, annex H); so do the providers.
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(1_024, bytes.length));
  if (!head.includes("%PDF-")) throw new UsageError("--file is not a PDF; name a file that starts with %PDF-");
  return sha256(bytes).toString("hex");
}
