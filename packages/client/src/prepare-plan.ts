import {
  type Connection,
  normalisePayload,
  type Plan,
  PlanRefusedError,
  type Target,
  type VoidRequest,
} from "@countersign/ledger";
import {
  bodyDigest,
  documentsOf,
  type PreparedRequest,
  type Refusal,
  type SignatureProvider,
} from "@countersign/provider";
import { type Action, type NeutralPayload, newId, type TargetPayload } from "@countersign/runtime";

/** What planning needs beside the ledger. */
export interface PlanningParts {
  provider(name: string): SignatureProvider | undefined;
  connections(tenantId: string): Promise<readonly Connection[]>;
  /** Throws the ledger's not-found error where this tenant has no such document. */
  document(tenantId: string, sha256: string): Promise<Uint8Array>;
}

interface Common {
  tenantId: string;
  intentKey: string;
  /** The tenant's only or default one when left out. */
  connection?: string | undefined;
  requestedBy?: string | undefined;
  approvedBy?: string | undefined;
}

export type PlanRequest =
  | (Common & {
      action: "SEND";
      payload: NeutralPayload;
      supersedes?: { operationId: string; mode: "void-first" | "send-first" } | undefined;
    })
  | (Common & { action: Exclude<Action, "SEND">; target: Target; payload?: TargetPayload | undefined });

/**
 * Turns a producer's request into a plan: chooses the connection, normalises the payload, lets the adapter prepare the
 * request, and digests the body that will be sent. What the adapter can't send is refused by the name of its field
 * (`PlanRefusedError` with `detail.field`), never dropped. Reads, writes nothing.
 */
export async function preparePlan(parts: PlanningParts, request: PlanRequest): Promise<Plan> {
  const { tenantId, intentKey } = request;
  const connection = chooseConnection(await parts.connections(tenantId), request.connection);
  const provider = parts.provider(connection.provider);
  if (provider === undefined) {
    throw new PlanRefusedError("provider-unknown", "this build has no adapter for the connection's provider");
  }
  if (!provider.capabilities[request.action].supported) {
    throw new PlanRefusedError("action-unsupported", `${request.action} is not supported on this connection`, {
      field: "action",
    });
  }
  const ids = { tenantId, operationId: newId() };
  const common = {
    ...ids,
    intentKey,
    ...(request.requestedBy === undefined ? {} : { requestedBy: request.requestedBy }),
    ...(request.approvedBy === undefined ? {} : { approvedBy: request.approvedBy }),
  };
  const { connectionId } = connection;
  if (request.action !== "SEND") {
    const { action, target } = request;
    const payload = request.payload ?? { schemaVersion: 1 };
    const prepared = accepted(provider.prepare(action, payload, ids));
    return { ...common, approved: { action, connectionId, payload, target }, ...digested(prepared, new Map()) };
  }
  const payload = normalisePayload(request.payload);
  const prepared = accepted(provider.prepare("SEND", payload, ids));
  const documents = await documentsFor(parts, tenantId, prepared);
  return {
    ...common,
    approved: { action: "SEND", connectionId, payload },
    ...digested(prepared, documents),
    ...(request.supersedes === undefined
      ? {}
      : { supersedes: { ...request.supersedes, voidRequest: voidRequestOf(provider) } }),
  };
}

/**
 * The connection that is meant: the named one, else the tenant's only one, else its default.
 * @throws PlanRefusedError `connection-unknown` or `connection-required`
 */
export function chooseConnection(connections: readonly Connection[], named: string | undefined): Connection {
  if (named !== undefined) {
    const found = connections.find(({ connectionId }) => connectionId === named);
    if (found !== undefined) return found;
    throw new PlanRefusedError("connection-unknown", "this tenant has no such connection", { field: "connection" });
  }
  const chosen = connections.length === 1 ? connections[0] : connections.find(({ isDefault }) => isDefault);
  if (chosen !== undefined) return chosen;
  const why =
    connections.length === 0
      ? "this tenant has no connection yet: make one with countersign connection create"
      : "this tenant has several connections and no default: name one";
  throw new PlanRefusedError("connection-required", why, { field: "connection" });
}

async function documentsFor(
  parts: PlanningParts,
  tenantId: string,
  prepared: PreparedRequest,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const digests = documentsOf(prepared);
  const bytes = await Promise.all(digests.map((digest) => parts.document(tenantId, digest)));
  return new Map(digests.map((digest, index) => [digest, bytes[index] ?? new Uint8Array()]));
}

const digested = (request: PreparedRequest, documents: ReadonlyMap<string, Uint8Array>) => ({
  request,
  bodyDigest: Buffer.from(bodyDigest(request, documents), "hex"),
});

/** Makes the request of a VOID that the system plans itself. */
export const voidRequestOf =
  (provider: SignatureProvider): VoidRequest =>
  (ids) =>
    digested(accepted(provider.prepare("VOID", { schemaVersion: 1 }, ids)), new Map());

function accepted(prepared: PreparedRequest | Refusal): PreparedRequest {
  if (!("refused" in prepared)) return prepared;
  const field = prepared.field === "action" ? "action" : `payload.${prepared.field}`;
  throw new PlanRefusedError("field-unsupported", prepared.message, { field });
}
