import { createHmac, randomUUID } from "node:crypto";
import {
  type ApplyOutcome,
  type ApplyParts,
  applyInboxEntry,
  createReceiver,
  ingressMetrics,
} from "@countersign/app-webhook-receiver";
import { type DryRunRow, dryRunReplay, replayMany } from "@countersign/client/transaction";
import { createWebhookEndpoint, type InboxFilter, recordEvidence, type SigningStatus } from "@countersign/ledger";
import { createLogger, createMetrics, newId } from "@countersign/runtime";
import { Scene } from "./harness.js";

const secret = "whsec_replay-test-secret-0123456789abcdef";

/** `retired`: the endpoint's scheme is one that this build no longer has. */
type EndpointName = "elchi" | "dropbox-sign" | "retired";

/** What a sender says. */
export interface Story {
  readonly at?: EndpointName;
  /** The event's type, as the provider names it. */
  readonly type: string;
  readonly ref?: string;
  /** Our own metadata: the operation, and which tenant it names. */
  readonly names?: { operationId: string; tenant: string };
  /** Bytes instead of all that. */
  readonly raw?: string;
  /** Without an id of its own, so that it may only hint. */
  readonly nameless?: boolean;
}

/** How an event became a person's; `unread`: nobody could interpret it when it came in, but somebody can today. */
export type Fate = "QUARANTINED" | "DEAD" | "CONFLICT" | "unread";

/** How an inbox row stands. */
export interface Standing {
  status: string;
  outcome: string | null;
}

/** A scene whose events come in through the real receiver, are left to a person, told in a dry run, and replayed. */
export class ReplayScene {
  readonly scene: Scene;
  readonly #receive: ReturnType<typeof createReceiver>;
  readonly #endpoints: ReadonlyMap<EndpointName, string>;
  readonly #apply: ApplyParts;
  readonly #known = new Set<string>();

  private constructor(scene: Scene, endpoints: ReadonlyMap<EndpointName, string>) {
    this.scene = scene;
    this.#endpoints = endpoints;
    const logger = createLogger({ name: "scene", destination: { write: (line) => void scene.logLines.push(line) } });
    const providerByName = (name: string) => scene.adapters.get(name);
    const common = { ledger: scene.ledger, providerByName, logger };
    this.#receive = createReceiver({
      ...common,
      handOff: async () => ({ failed: 0 }),
      metrics: ingressMetrics(createMetrics("scene")),
      endpointCacheMs: 60_000,
      bodyLimit: 65_536,
    });
    // Whatever is waited for is waited for longer than a test takes.
    this.#apply = { ...common, handOff: async () => undefined, eventWaitMs: 600_000 };
  }

  static async start(): Promise<ReplayScene> {
    const scene = await Scene.start();
    const endpoints = new Map<EndpointName, string>();
    for (const name of ["elchi", "dropbox-sign", "retired"] as const) {
      const scheme = name === "retired" ? "elchi" : name;
      const at = { tenantId: "acme", connectionId: "main", scheme, secret };
      endpoints.set(name, (await createWebhookEndpoint(scene.ledger, at)).endpointId);
    }
    return new ReplayScene(scene, endpoints);
  }

  stop(): Promise<void> {
    return this.scene.stop();
  }

  get sql() {
    return this.scene.ledger.sql;
  }

  /** A SEND that the simulator has confirmed, whose request stands as `status`. */
  async confirmed(status: SigningStatus = "SENT"): Promise<{ operationId: string; ref: string }> {
    const { operationId } = await this.scene.planSend();
    const { state, providerRef } = await this.scene.settle(operationId);
    if (state !== "CONFIRMED" || providerRef === null) throw new Error(`the SEND is ${state}`);
    await this.sql`UPDATE contract_signing SET status = ${status} WHERE provider_ref = ${providerRef}`;
    return { operationId, ref: providerRef };
  }

  /** A SEND that was never tried, whose staged document the provider holds. */
  async staged(): Promise<{ operationId: string; ref: string }> {
    const { operationId } = await this.scene.planSend();
    const ref = newRef();
    const by = { tenantId: "acme", actor: "test", reason: "test" };
    await recordEvidence(this.sql, { ...by, operationId, providerRef: ref, role: "draft", source: "lookup" });
    return { operationId, ref };
  }

  /** Delivers an event and leaves it to a person; its id. */
  async left(story: Story, fate: Fate): Promise<string> {
    const at = story.at ?? "elchi";
    const { body, headers } = signed(story);
    const answer = await this.#receive(this.#endpoints.get(at) ?? "", Buffer.from(body), headers);
    if (answer.status !== 200) throw new Error(`answered ${answer.status}`);
    const [row] = await this.sql<{ inboxId: string }[]>`
      SELECT inbox_id AS "inboxId" FROM webhook_inbox ORDER BY received_at DESC LIMIT 1`;
    const inboxId = row?.inboxId ?? "";
    if (this.#known.has(inboxId)) throw new Error("this event was here already");
    this.#known.add(inboxId);
    const unread = fate === "unread";
    await this.sql`
      UPDATE webhook_inbox SET status = ${unread ? "QUARANTINED" : fate}, due_at = NULL, outcome = 'left-by-the-test',
        provider_ref = CASE WHEN ${unread} THEN NULL ELSE provider_ref END, operation_id = CASE WHEN ${unread} THEN NULL ELSE operation_id END
      WHERE inbox_id = ${inboxId}`;
    return inboxId;
  }

  /** From now on nobody here can read what came in at the endpoint `retired`. */
  async retire(): Promise<void> {
    await this
      .sql`UPDATE webhook_endpoint SET scheme = 'retired' WHERE endpoint_id = ${this.#endpoints.get("retired") ?? ""}`;
  }

  async dryRun(filter: InboxFilter = {}): Promise<DryRunRow[]> {
    const provider = (name: string) => this.scene.adapters.get(name);
    const { rows } = await dryRunReplay(this.scene.ledger, { tenantId: "acme", filter, limit: 10_000, provider });
    return rows;
  }

  /** Really makes them due again; their ids, the oldest first. */
  async replay(filter: InboxFilter = {}): Promise<string[]> {
    return (await replayMany(this.scene.ledger, "acme", filter, { who: "u-17", limit: 10_000 })).replayed;
  }

  apply(inboxId: string): Promise<ApplyOutcome> {
    return applyInboxEntry(this.#apply, { tenantId: "acme", inboxId });
  }

  async standing(inboxId: string): Promise<Standing | undefined> {
    const [row] = await this.sql<Standing[]>`SELECT status, outcome FROM webhook_inbox WHERE inbox_id = ${inboxId}`;
    return row;
  }

  async openTickets(inboxId: string): Promise<number> {
    const [row] = await this.sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM ticket WHERE subject_kind = 'inbox' AND subject_id = ${inboxId} AND resolved_at IS NULL`;
    return row?.count ?? 0;
  }
}

export const newRef = (): string => `sr_${randomUUID()}`;

function signed(story: Story): { body: string; headers: Record<string, string> } {
  if (story.at === "dropbox-sign") {
    const at = String(Math.floor(Date.now() / 1_000));
    const hash = createHmac("sha256", secret).update(`${at}${story.type}`).digest("hex");
    const event = {
      event_time: at,
      event_type: story.type,
      event_hash: hash,
      event_metadata: { related_signature_id: newId() },
    };
    return { body: JSON.stringify({ event, signature_request: { signature_request_id: story.ref } }), headers: {} };
  }
  const body = story.raw ?? weSignBody(story);
  const at = Math.floor(Date.now() / 1_000);
  const mac = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
  return { body, headers: { "elchi-signature": `t=${at},v1=${mac}` } };
}

function weSignBody({ type, ref, names, nameless }: Story): string {
  return JSON.stringify({
    ...(nameless === true ? {} : { id: `evt_${randomUUID()}` }),
    type,
    // Of each event its own: a derived id is made of it.
    created_at: `2026-11-30T00:00:00.000Z ${randomUUID()}`,
    data: {
      signing_request_id: ref,
      ...(names === undefined ? {} : { metadata: { operation_id: names.operationId, tenant: names.tenant } }),
    },
  });
}
