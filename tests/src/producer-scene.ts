import { createApiKey, createWebhookEndpoint } from "@countersign/ledger";
import type { NeutralPayloadInput } from "@countersign/runtime";
import { z } from "zod";
import { type FleetProcess, RealFleet } from "./real-processes.js";

const secret = "whsec_producer-scene-secret-0123456789abcdef";
/** Five processes start at once: longest wait for all of them on a busy machine, ms. */
export const patientMs = 90_000;
const planned = z.object({ operationId: z.string() });

/** The whole fleet as real processes: a producer's HTTP request at one end, the provider and its webhooks at the other. */
export class ProducerScene {
  readonly fleet: RealFleet;
  readonly #key: string;
  readonly #enqueuer: FleetProcess;

  private constructor(fleet: RealFleet, key: string, enqueuer: FleetProcess) {
    this.fleet = fleet;
    this.#key = key;
    this.#enqueuer = enqueuer;
  }

  /** @param env settings of every process, besides the usual ones */
  static async start(env: Record<string, string> = {}): Promise<ProducerScene> {
    const fleet = await RealFleet.start();
    const { key } = await createApiKey(fleet.scene.ledger, "acme", "producer");
    const { path } = await createWebhookEndpoint(fleet.scene.ledger, {
      tenantId: "acme",
      connectionId: "main",
      scheme: "elchi",
      secret,
    });
    const spawn = async (app: string, entry = "main.js"): Promise<FleetProcess> => {
      const spawned = await fleet.launch(app, entry, { GRACE_MS: "30000", ...env });
      await spawned.ready(patientMs);
      return spawned;
    };
    const [enqueuer, ingress] = await Promise.all([
      spawn("enqueuer"),
      spawn("webhook-receiver", "ingress-main.js"),
      spawn("webhook-receiver", "apply-main.js"),
      spawn("reconcile-worker"),
      spawn("submit-worker"),
    ]);
    fleet.scene.simulator.configure({
      workspaces: [{ name: "one", keys: ["wsk_test"], hooks: [{ url: `${ingress.url}${path}`, secret }] }],
    });
    return new ProducerScene(fleet, key, enqueuer);
  }

  /** Asks for a SEND as a producer does; its operation's id. */
  async send(intent: { key: string; payload?: Partial<NeutralPayloadInput>; traceparent?: string }): Promise<string> {
    const answer = await fetch(`${this.#enqueuer.url}/v1/operations`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#key}`,
        "content-type": "application/json",
        ...(intent.traceparent === undefined ? {} : { traceparent: intent.traceparent }),
      },
      body: JSON.stringify({
        intentKey: intent.key,
        action: "SEND",
        payload: { ...this.fleet.scene.payload(), ...intent.payload },
      }),
    });
    const body: unknown = await answer.json();
    if (answer.status !== 201) throw new Error(`answered ${answer.status}: ${JSON.stringify(body)}`);
    return planned.parse(body).operationId;
  }

  /** The requests that the provider holds of it. */
  reference(operationId: string): string {
    return this.fleet.scene.requests(operationId)[0]?.id ?? "";
  }

  stop(): Promise<void> {
    return this.fleet.stop();
  }
}
