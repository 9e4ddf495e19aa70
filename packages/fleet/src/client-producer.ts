import { type Countersign, createClient } from "@countersign/client";
import type { Producer, SendOrder } from "./producer.js";

/** Plans over HTTP with the producers' client, as any other service does. */
export class ClientProducer implements Producer {
  readonly #client: Countersign;

  constructor(baseUrl: string, apiKey: string) {
    this.#client = createClient({ baseUrl, apiKey });
  }

  async uploadDocument(bytes: Buffer): Promise<string> {
    const { sha256 } = await this.#client.putDocument(bytes);
    return sha256;
  }

  async send({ intent, payload, supersedes }: SendOrder): Promise<string> {
    const { operationId } = await this.#client.plan({
      intentKey: intent,
      action: "SEND",
      payload,
      ...(supersedes === undefined ? {} : { supersedes }),
    });
    return operationId;
  }

  async void(intent: string, targetOperationId: string): Promise<string> {
    const { operationId } = await this.#client.plan({
      intentKey: intent,
      action: "VOID",
      target: { operationId: targetOperationId },
    });
    return operationId;
  }
}
