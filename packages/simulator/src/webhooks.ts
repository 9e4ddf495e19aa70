import { createHmac, randomUUID } from "node:crypto";
import { lookup as dnsLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, request as httpRequest } from "undici";
import { notFound, ProviderError } from "./answer.js";
import type { Background, Clock } from "./clock.js";
import type { SimulatorConfig } from "./config.js";
import type { WebhookFault } from "./fault-kinds.js";
import type { Fault, FaultPlan } from "./fault-plan.js";
import { checkHookUrl, type Delivery, type Hook, mayDial, newSecret } from "./hook.js";
import type { SigningRequest } from "./signing-request.js";

/** The wait before each attempt, counted from the one before: eight attempts over about 21 hours. */
export const ATTEMPT_DELAYS_MS: readonly number[] = [
  0, 30_000, 120_000, 600_000, 1_800_000, 7_200_000, 21_600_000, 43_200_000,
];

/** Finished deliveries that a hook remembers. */
const DELIVERIES_KEPT = 8;

/** The `Elchi-Signature` header of a body: HMAC-SHA256, keyed with the whole secret text, over `t.body`. */
export function signatureHeader(secret: string, unixSeconds: number, body: string): string {
  const mac = createHmac("sha256", secret).update(`${unixSeconds}.${body}`).digest("hex");
  return `t=${unixSeconds},v1=${mac}`;
}

interface Parts {
  readonly clock: Clock;
  readonly background: Background;
  readonly config: SimulatorConfig;
  readonly faults: FaultPlan;
}

/** The hooks of all workspaces and everything on its way to them. */
export class Webhooks {
  readonly #parts: Parts;
  readonly #hooks = new Map<string, Hook>();
  readonly #held = new Map<string, () => void>();
  readonly #stopping = new AbortController();
  readonly #agent: Agent;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#agent = new Agent({ connect: { lookup: this.#guardedLookup }, connections: 32 });
  }

  /** Registers a hook. @throws ProviderError 422 `invalid_url`. */
  register(workspace: string, url: string, secret = newSecret()): Hook {
    const hook = this.#newHook(
      workspace,
      checkHookUrl(url, this.#parts.config.webhooks.allowLoopback, "invalid_url"),
      secret,
    );
    this.#hooks.set(hook.id, hook);
    return hook;
  }

  /** A hook for one request only, from its `callback_url`. */
  forCallback(workspace: string, url: string): Hook {
    return this.#newHook(workspace, url, newSecret());
  }

  /** @throws ProviderError 404 for another workspace's hook. */
  get(workspace: string | undefined, id: string): Hook {
    const hook = this.#hooks.get(id);
    if (hook === undefined || (workspace !== undefined && hook.workspace !== workspace)) throw notFound();
    return hook;
  }

  list(): Hook[] {
    return [...this.#hooks.values()];
  }

  remove(workspace: string, id: string): void {
    const hook = this.get(workspace, id);
    hook.enabled = false;
    for (const delivery of hook.deliveries) delivery.cancel?.();
    this.#hooks.delete(id);
  }

  /** Turns a hook on again; deliveries that were waiting resume, what happened meanwhile is not delivered. */
  enable(id: string): void {
    const hook = this.get(undefined, id);
    hook.enabled = true;
    hook.failuresInRow = 0;
    for (const delivery of hook.deliveries) {
      if (delivery.state === "waiting" && delivery.cancel === undefined) this.#plan(hook, delivery, 0);
    }
  }

  /** Sends one event again by hand, delivered or not. @throws ProviderError 404 when it is no longer remembered. */
  resend(id: string, eventId: string): void {
    const hook = this.get(undefined, id);
    const delivery = hook.deliveries.find((candidate) => candidate.eventId === eventId);
    if (delivery === undefined) throw notFound();
    delivery.cancel?.();
    Object.assign(delivery, { state: "waiting", attempts: 0 });
    this.#plan(hook, delivery, 0);
  }

  /** Emits an event of a request to every hook of its workspace and to its callback. */
  emit(request: SigningRequest, type: string): void {
    const eventId = `evt_${randomUUID().replaceAll("-", "")}`;
    const first = request.events === 0;
    request.events += 1;
    const body = JSON.stringify({
      id: eventId,
      type,
      created_at: new Date(this.#parts.clock.now()).toISOString(),
      data: {
        signing_request_id: request.id,
        document_id: request.documentId,
        status: request.status,
        ...(first ? { metadata: request.metadata } : {}),
      },
    });
    const fault = this.#parts.faults.forEvent(type, request.events, { ...request.subject, reference: request.id });
    const hooks = this.list().filter((hook) => hook.workspace === request.workspace);
    if (request.callback !== undefined) hooks.push(request.callback);
    const send = (delayMs = 0) => {
      for (const hook of hooks)
        this.#enqueue(hook, { eventId, type, body }, delayMs, fault?.kind === "webhook-duplicate");
    };
    this.#sendWithFault(request.id, send, fault);
  }

  /** Ends every planned and running delivery. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#agent.destroy();
  }

  #sendWithFault(requestId: string, send: (delayMs?: number) => void, fault: Fault<WebhookFault> | undefined): void {
    const releaseHeld = this.#held.get(requestId);
    this.#held.delete(requestId);
    if (fault?.kind === "webhook-out-of-order") {
      const cancel = this.#parts.background.after(fault.webhookDelayMs, () => {
        this.#held.delete(requestId);
        send();
      });
      this.#held.set(requestId, () => {
        cancel();
        // Well after its successor left, so that it also arrives after it.
        send(50);
      });
    } else if (fault?.kind === "webhook-delay") send(fault.webhookDelayMs);
    else if (fault?.kind !== "webhook-drop") send();
    releaseHeld?.();
  }

  #newHook(workspace: string, url: string, secret: string): Hook {
    const id = `hook_${randomUUID().replaceAll("-", "")}`;
    return { id, workspace, url, secret, enabled: true, failuresInRow: 0, deliveries: [] };
  }

  #enqueue(hook: Hook, event: Pick<Delivery, "eventId" | "type" | "body">, delayMs: number, twice: boolean): void {
    // While a hook is off nothing is queued for it.
    if (!hook.enabled) return;
    for (let copy = 0; copy < (twice ? 2 : 1); copy += 1) {
      const delivery: Delivery = {
        ...event,
        attempts: 0,
        lastStatus: undefined,
        lastAttemptAt: undefined,
        state: "waiting",
        cancel: undefined,
      };
      hook.deliveries.push(delivery);
      this.#plan(hook, delivery, delayMs);
    }
  }

  #plan(hook: Hook, delivery: Delivery, delayMs: number): void {
    const cancel = this.#parts.background.after(delayMs, () => {
      delivery.cancel = undefined;
      if (hook.enabled && delivery.state === "waiting") {
        void this.#parts.background.track(this.#attempt(hook, delivery));
      }
    });
    delivery.cancel = () => {
      delivery.cancel = undefined;
      cancel();
    };
  }

  async #attempt(hook: Hook, delivery: Delivery): Promise<void> {
    delivery.attempts += 1;
    delivery.lastAttemptAt = this.#parts.clock.now();
    delivery.lastStatus = await this.#post(hook, delivery);
    if (this.#stopping.signal.aborted) return;
    const { webhooks } = this.#parts.config;
    if (delivery.lastStatus !== undefined && delivery.lastStatus >= 200 && delivery.lastStatus < 300) {
      hook.failuresInRow = 0;
      delivery.state = "delivered";
    } else {
      hook.failuresInRow += 1;
      if (hook.failuresInRow >= webhooks.disableAfter) hook.enabled = false;
      const delay = ATTEMPT_DELAYS_MS[delivery.attempts];
      if (delay === undefined) delivery.state = "abandoned";
      else this.#plan(hook, delivery, delay * webhooks.timeScale);
    }
    this.#forgetOld(hook);
  }

  /** The status that was answered, or undefined when there was none in time. */
  async #post(hook: Hook, delivery: Delivery): Promise<number | undefined> {
    // Real time, not the provider's movable clock: receivers compare it with theirs.
    const unixSeconds = Math.floor(Date.now() / 1_000);
    try {
      const response = await httpRequest(hook.url, {
        method: "POST",
        dispatcher: this.#agent,
        signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(this.#parts.config.webhooks.timeoutMs)]),
        headers: {
          "content-type": "application/json",
          "user-agent": "wesign-simulator",
          "elchi-signature": signatureHeader(hook.secret, unixSeconds, delivery.body),
          "elchi-event-id": delivery.eventId,
        },
        body: delivery.body,
      });
      await response.body.dump();
      return response.statusCode;
    } catch {
      // Refused, reset, timed out or stopped: for the sender all the same, there was no answer.
      return undefined;
    }
  }

  #forgetOld(hook: Hook): void {
    const finished = hook.deliveries.filter((delivery) => delivery.state !== "waiting");
    const forget = new Set(finished.slice(0, Math.max(0, finished.length - DELIVERIES_KEPT)));
    if (forget.size > 0) hook.deliveries = hook.deliveries.filter((delivery) => !forget.has(delivery));
  }

  /** Checks every address a name resolves to at the moment it is dialled. */
  readonly #guardedLookup: LookupFunction = (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const { allowLoopback } = this.#parts.config.webhooks;
      if (!addresses.every(({ address }) => mayDial(address, allowLoopback))) {
        return callback(new ProviderError(422, "invalid_url", "The host resolves to a reserved address."), []);
      }
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}
