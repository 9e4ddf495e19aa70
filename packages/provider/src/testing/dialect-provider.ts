import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import { type AnswerRow, classify } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type {
  ActionCapability,
  CallContext,
  LookupCall,
  LookupQuery,
  LookupResult,
  Observation,
  PreparedRequest,
  Refusal,
  RequestIds,
  SignatureProvider,
  WebhookContract,
} from "../port.js";
import { bearer, submitRequest } from "../submit-request.js";
import { sendAccepted, targetAccepted } from "../wesign/answers.js";
import { weSignLookup } from "../wesign/lookup.js";
import { prepareOnTarget, prepareSend } from "../wesign/prepare.js";

/** What one provider's contract says where it differs from WeSign's, whose HTTP calls it shares. */
export interface Dialect {
  name: string;
  capabilities: Record<Action, ActionCapability>;
  /** What its refusals mean; whatever isn't in it is ambiguous. */
  answers: Record<Exclude<Action, "FINALIZE">, readonly AnswerRow[]>;
}

/**
 * A provider without templates, webhooks and FINALIZE that speaks WeSign's HTTP calls in a dialect of its own: it sends a
 * key only where the record of SEND is keyed, and looks up only what the record says.
 */
export class DialectProvider implements SignatureProvider {
  readonly name: string;
  readonly capabilities: Record<Action, ActionCapability>;
  readonly webhooks: Record<string, WebhookContract> = {};
  readonly #transport: HttpTransport;
  readonly #answers: Dialect["answers"];

  constructor(transport: HttpTransport, { name, capabilities, answers }: Dialect) {
    this.#transport = transport;
    this.name = name;
    this.capabilities = capabilities;
    this.#answers = answers;
  }

  prepare(action: "SEND", payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(...args: PrepareArguments): PreparedRequest | Refusal {
    if (!this.capabilities[args[0]].supported) {
      return { refused: true, field: "action", message: "this provider can't do that" };
    }
    return args[0] === "SEND" ? this.#prepareSend(args[1], args[2]) : prepareOnTarget(args[0], args[1]);
  }

  async submit(action: Action, request: PreparedRequest, call: CallContext): Promise<Observation> {
    if (action === "FINALIZE" || !this.capabilities[action].supported) {
      return { kind: "not-sent", cause: "action-not-supported" };
    }
    const outcome = await submitRequest(this.#transport, request, call, bearer);
    const read = action === "SEND" ? sendAccepted(call, false) : targetAccepted(call.targetRef ?? "");
    return classify(outcome, this.#answers[action], read);
  }

  async lookup(query: LookupQuery, call: LookupCall): Promise<LookupResult> {
    const { byReference, byMetadata } = this.capabilities.SEND.lookup;
    const can = query.by === "reference" ? byReference : byMetadata;
    return can ? await weSignLookup(this.#transport, query, call) : { kind: "failed", cause: "no-lookup", ms: 0 };
  }

  #prepareSend(payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal {
    if (payload.template !== undefined) {
      return { refused: true, field: "template", message: "this provider has no templates" };
    }
    const prepared = prepareSend(payload, ids);
    if ("refused" in prepared || this.capabilities.SEND.idempotency.kind === "keyed") return prepared;
    const { idempotencyHeader: _, ...keyless } = prepared;
    return keyless;
  }
}

type PrepareArguments =
  | [action: "SEND", payload: NeutralPayload, ids: RequestIds]
  | [action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds];
