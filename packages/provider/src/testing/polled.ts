import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import type { HttpTransport } from "../http-call.js";
import type {
  ActionCapability,
  CallContext,
  LookupCall,
  LookupManyQuery,
  LookupManyResult,
  LookupQuery,
  LookupResult,
  Observation,
  PreparedRequest,
  Refusal,
  RequestIds,
  SignatureProvider,
  WebhookContract,
} from "../port.js";
import { WeSign } from "../wesign/wesign.js";

/** How long the list shows a request, and the least time between two reads of one, ms. Short, so that tests can wait. */
const retentionMs = 60_000;
const minIntervalMs = 200;

const polled = (capability: ActionCapability): ActionCapability => ({
  ...capability,
  lookup: {
    ...capability.lookup,
    documented: true,
    retentionMs,
    minIntervalMs,
    note: "Documented: the list shows a request for a minute, and one request may be read five times a second.",
  },
  webhookEvidence: false,
  reference: { source: "none: an adapter of the tests, against the simulator", checkedOn: "2026-12-01" },
});

/** WeSign's calls with lookups that are documented, forget after a minute, and have a poll budget; no webhooks. */
export class PolledProvider implements SignatureProvider {
  readonly name = "polled";
  readonly capabilities: Record<Action, ActionCapability>;
  readonly webhooks: Record<string, WebhookContract> = {};
  readonly #inner: WeSign;

  constructor(transport: HttpTransport) {
    this.#inner = new WeSign(transport);
    const { SEND, VOID, RESEND, FINALIZE } = this.#inner.capabilities;
    this.capabilities = { SEND: polled(SEND), VOID: polled(VOID), RESEND, FINALIZE: polled(FINALIZE) };
  }

  prepare(action: "SEND", payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(...args: PrepareArguments): PreparedRequest | Refusal {
    return args[0] === "SEND"
      ? this.#inner.prepare(args[0], args[1], args[2])
      : this.#inner.prepare(args[0], args[1], args[2]);
  }

  submit(action: Action, request: PreparedRequest, call: CallContext): Promise<Observation> {
    return this.#inner.submit(action, request, call);
  }

  lookup(query: LookupQuery, call: LookupCall): Promise<LookupResult> {
    return this.#inner.lookup(query, call);
  }

  lookupMany(query: LookupManyQuery, call: LookupCall): Promise<LookupManyResult> {
    return this.#inner.lookupMany(query, call);
  }
}

type PrepareArguments =
  | [action: "SEND", payload: NeutralPayload, ids: RequestIds]
  | [action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds];
