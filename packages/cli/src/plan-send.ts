import {
  type Ledger,
  normalisePayload,
  openConnection,
  type PlanOutcome,
  plan,
  postgresDocumentStore,
  type VoidRequest,
} from "@countersign/ledger";
import {
  bodyDigest,
  documentsOf,
  type PreparedRequest,
  type Refusal,
  type SignatureProvider,
} from "@countersign/provider";
import { type NeutralPayloadInput, neutralPayload, newId, sha256 } from "@countersign/runtime";
import { chooseConnection } from "./choose-connection.js";
import { RefusedError, UsageError } from "./errors.js";

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
 * Records a SEND exactly as the enqueuer does: documents stored, payload normalised, request prepared by the adapter,
 * and one plan. Its row is due at once; a worker's due loop finds it.
 *
 * @throws UsageError naming the payload field, RefusedError naming what the adapter can't send, and the ledger's
 *   PlanRefusedError and NotFoundError
 */
export async function planSend(ledger: Ledger, providers: ProviderByName, request: SendRequest): Promise<PlanOutcome> {
  const { tenantId } = request;
  const connectionId = await chooseConnection(ledger, tenantId, request.connectionId);
  const provider = await adapterOf(ledger, providers, tenantId, connectionId);
  const files = (request.files ?? []).map((file) => ({ ...file, sha256: checkedDigest(file.bytes) }));
  const payload = normalisePayload(readPayload(request.payload, files));
  const operationId = newId();
  const prepared = accepted(provider.prepare("SEND", payload, { tenantId, operationId }));
  const store = postgresDocumentStore(ledger);
  for (const file of files) await store.put(tenantId, file.bytes);
  const documents = new Map<string, Uint8Array>(files.map((file) => [file.sha256, file.bytes]));
  for (const digest of documentsOf(prepared)) {
    if (!documents.has(digest)) documents.set(digest, await store.get(tenantId, digest));
  }
  return await plan(ledger, {
    tenantId,
    operationId,
    intentKey: request.intentKey,
    approved: { action: "SEND", connectionId, payload },
    request: prepared,
    bodyDigest: Buffer.from(bodyDigest(prepared, documents), "hex"),
    ...(request.supersedes === undefined
      ? {}
      : { supersedes: { ...request.supersedes, voidRequest: voidRequestOf(provider) } }),
    ...people(request),
  });
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
  const { tenantId, connectionId } = target;
  const provider = await adapterOf(ledger, providers, tenantId, connectionId);
  const operationId = newId();
  return await plan(ledger, {
    tenantId,
    operationId,
    intentKey: target.intentKey,
    approved: {
      action: "VOID",
      connectionId,
      payload: { schemaVersion: 1 },
      target: { operationId: target.operationId },
    },
    ...voidRequestOf(provider)({ tenantId, operationId }),
    ...people(target),
  });
}

async function adapterOf(
  ledger: Ledger,
  providers: ProviderByName,
  tenantId: string,
  connectionId: string,
): Promise<SignatureProvider> {
  const connection = await openConnection(ledger, tenantId, connectionId);
  const provider = providers(connection.provider);
  if (provider === undefined)
    throw new RefusedError("provider-unknown", "this build has no adapter for the connection's provider");
  return provider;
}

const voidRequestOf =
  (provider: SignatureProvider): VoidRequest =>
  (ids) => {
    const request = accepted(provider.prepare("VOID", { schemaVersion: 1 }, ids));
    return { request, bodyDigest: Buffer.from(bodyDigest(request, new Map()), "hex") };
  };

function accepted(prepared: PreparedRequest | Refusal): PreparedRequest {
  if (!("refused" in prepared)) return prepared;
  throw new RefusedError("not-sendable", `${prepared.field} can't be sent: ${prepared.message}`);
}

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

function people({ requestedBy, approvedBy }: { requestedBy?: string; approvedBy?: string }) {
  return {
    ...(requestedBy === undefined ? {} : { requestedBy }),
    ...(approvedBy === undefined ? {} : { approvedBy }),
  };
}
