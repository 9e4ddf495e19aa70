import { randomUUID } from "node:crypto";
import type { Countersign, InboxEvent, InboxFilter } from "@countersign/client";
import { createWebhookEndpoint, type Delivery, recordDelivery } from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { ReviewBench } from "./review-bench.js";

/** Stands in every body of the bench: no answer and no log line may ever hold it. */
export const bodyMarker = "MARKER-of-the-body";

/** Where an event came in: `charlie` has two connections. */
export type Place = "acme/main" | "bravo/main" | "charlie/one" | "charlie/two";

const places: readonly Place[] = ["acme/main", "bravo/main", "charlie/one", "charlie/two"];

/** The API with webhook endpoints and events that stand as a test wants them. For tests. */
export class InboxBench {
  readonly review: ReviewBench;
  readonly reviewer: Countersign;
  readonly endpoints = new Map<Place, string>();

  private constructor(review: ReviewBench) {
    this.review = review;
    this.reviewer = review.reviewer;
  }

  static async start(): Promise<InboxBench> {
    const bench = new InboxBench(await ReviewBench.start());
    for (const place of places) {
      const [tenantId = "", connectionId = ""] = place.split("/");
      const { endpointId } = await createWebhookEndpoint(bench.review.api.ledger, {
        tenantId,
        connectionId,
        scheme: "elchi",
        secret: `whsec_${randomUUID()}`,
      });
      bench.endpoints.set(place, endpointId);
    }
    return bench;
  }

  stop(): Promise<void> {
    return this.review.stop();
  }

  get sql() {
    return this.review.api.ledger.sql;
  }

  endpoint(place: Place): string {
    return this.endpoints.get(place) ?? "";
  }

  /** Stores an event as the ingress does; its id. Unless the change says otherwise its body completes `reference`. */
  async stored(change: Partial<Delivery> = {}, place: Place = "acme/main"): Promise<string> {
    const [tenantId = "", connectionId = ""] = place.split("/");
    const providerEventId = change.providerEventId ?? `evt_${randomUUID()}`;
    const eventType = change.eventType ?? "signing_request.completed";
    const recorded = await recordDelivery(this.review.api.ledger, {
      tenantId,
      connectionId,
      endpointId: this.endpoint(place),
      providerEventId,
      eventType,
      body: bodyOf(providerEventId, eventType, change.providerRef),
      ...change,
    });
    if (recorded.kind !== "stored") throw new Error("expected a new event");
    return recorded.inboxId;
  }

  /** An event that is a person's, with its ticket. */
  quarantined(change: Partial<Delivery> = {}, place: Place = "acme/main"): Promise<string> {
    return this.stored({ quarantine: "unknown-type", ...change }, place);
  }

  /** An event that stands as `status` says, whatever it says itself. */
  async standing(status: string, change: Partial<Delivery> = {}): Promise<string> {
    const inboxId = await this.stored(change);
    await this
      .sql`UPDATE webhook_inbox SET status = ${status}, due_at = NULL, outcome = 'test' WHERE inbox_id = ${inboxId}`;
    return inboxId;
  }

  /** An event that is a person's although its bytes are gone: its dispute outlived their days. */
  async erased(change: Partial<Delivery> = {}): Promise<string> {
    const inboxId = await this.standing("CONFLICT", change);
    await this.sql`DELETE FROM webhook_body WHERE inbox_id = ${inboxId}`;
    return inboxId;
  }

  /** A confirmed SEND whose request the provider calls `status`; its reference. */
  async request(status = "SENT"): Promise<{ id: string; ref: string }> {
    const { id, ref } = await this.review.confirmed();
    await this.sql`UPDATE contract_signing SET status = ${status} WHERE provider_ref = ${ref}`;
    return { id, ref };
  }

  async listed(filter: InboxFilter = {}, from: Countersign = this.reviewer): Promise<InboxEvent[]> {
    const found: InboxEvent[] = [];
    for await (const event of from.inbox(filter)) found.push(event);
    return found;
  }

  async ids(filter: InboxFilter = {}, from: Countersign = this.reviewer): Promise<string[]> {
    return (await this.listed(filter, from)).map(({ inboxId }) => inboxId);
  }

  /** Every row, with the transaction that wrote it, of all that a replay could touch: what only reads leaves this as it was. */
  async tables(): Promise<unknown> {
    const names = ["webhook_inbox", "webhook_body", "contract_signing", "ticket", "work_item", "signing_operation"];
    const contents: Record<string, unknown> = {};
    for (const name of names) {
      contents[name] = await this.sql`
        SELECT xmin::text AS written_by, to_jsonb(t) AS row FROM ${this.sql(name)} t ORDER BY to_jsonb(t)::text`;
    }
    return contents;
  }

  /** Jobs handed over for these events. */
  jobs(ids: readonly string[]) {
    return this.review.api.handedOver.filter(({ subjectId }) => ids.includes(subjectId));
  }
}

/** A type that no other test uses, to filter by. */
export const ownType = (name: string): string => `test.${name}.${newId()}`;

function bodyOf(id: string, type: string, reference = "sr_nowhere"): Uint8Array {
  const data = { signing_request_id: reference, note: bodyMarker };
  return Buffer.from(JSON.stringify({ id, type, created_at: "2026-11-30T00:00:00.000Z", data }));
}
