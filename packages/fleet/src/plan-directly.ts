import { type Ledger, normalisePayload, plan, postgresDocumentStore } from "@countersign/ledger";
import {
  assembleBody,
  documentsOf,
  type PreparedRequest,
  type Refusal,
  type SignatureProvider,
} from "@countersign/provider";
import { newId } from "@countersign/runtime";
import { FleetError } from "./errors.js";
import type { Producer, SendOrder } from "./producer.js";

/** Plans straight into the ledger, as a producer does that shares its database; no HTTP in between. */
export class LedgerProducer implements Producer {
  readonly #ledger: Ledger;
  readonly #provider: SignatureProvider;
  readonly #tenantId: string;
  readonly #connectionId: string;
  readonly #documents = new Map<string, Buffer>();

  constructor(ledger: Ledger, provider: SignatureProvider, tenantId: string, connectionId: string) {
    this.#ledger = ledger;
    this.#provider = provider;
    this.#tenantId = tenantId;
    this.#connectionId = connectionId;
  }

  async uploadDocument(bytes: Buffer): Promise<string> {
    const digest = await postgresDocumentStore(this.#ledger).put(this.#tenantId, bytes);
    this.#documents.set(digest, bytes);
    return digest;
  }

  async send(order: SendOrder): Promise<string> {
    const ids = { tenantId: this.#tenantId, operationId: newId() };
    const payload = normalisePayload(order.payload);
    const outcome = await plan(this.#ledger, {
      ...ids,
      intentKey: order.intent,
      approved: { action: "SEND", connectionId: this.#connectionId, payload },
      ...this.#prepared(this.#provider.prepare("SEND", payload, ids)),
      ...(order.supersedes === undefined
        ? {}
        : {
            supersedes: {
              ...order.supersedes,
              voidRequest: (voidIds) => this.#prepared(this.#provider.prepare("VOID", { schemaVersion: 1 }, voidIds)),
            },
          }),
    });
    if (outcome.kind === "conflict") throw new FleetError("an intent was planned with another payload before");
    return outcome.operation.operationId;
  }

  async void(intent: string, targetOperationId: string): Promise<string> {
    const ids = { tenantId: this.#tenantId, operationId: newId() };
    const outcome = await plan(this.#ledger, {
      ...ids,
      intentKey: intent,
      approved: {
        action: "VOID",
        connectionId: this.#connectionId,
        payload: { schemaVersion: 1 },
        target: { operationId: targetOperationId },
      },
      ...this.#prepared(this.#provider.prepare("VOID", { schemaVersion: 1 }, ids)),
    });
    if (outcome.kind === "conflict") throw new FleetError("an intent was planned with another payload before");
    return outcome.operation.operationId;
  }

  #prepared(request: PreparedRequest | Refusal): { request: PreparedRequest; bodyDigest: Buffer } {
    if ("refused" in request) throw new FleetError(`the provider cannot send ${request.field}: ${request.message}`);
    const documents = new Map<string, Buffer>();
    for (const digest of documentsOf(request)) {
      const bytes = this.#documents.get(digest);
      if (bytes !== undefined) documents.set(digest, bytes);
    }
    return { request, bodyDigest: Buffer.from(assembleBody(request, documents).digest, "hex") };
  }
}
