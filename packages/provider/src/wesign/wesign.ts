import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import { type AnswerRow, classify, type ReadAccepted } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type {
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
import { usableReference } from "../reference.js";
import { bearer, submitRequest } from "../submit-request.js";
import { webhookContracts } from "../webhooks/registry.js";
import { sendAccepted, targetAccepted, weSignAnswers } from "./answers.js";
import { weSignCapabilities } from "./capabilities.js";
import { weSignFormat } from "./events.js";
import { finalize } from "./finalize.js";
import { weSignLookup, weSignLookupMany } from "./lookup.js";
import { prepareOnTarget, prepareSend } from "./prepare.js";
import { rest } from "./record.js";
import { confirmStaged, continueDraft, discardStaged } from "./staged.js";

/** WeSign (wesign.now). Base URL: the API's origin, without `/v1`. */
export class WeSign implements SignatureProvider {
  readonly name = "wesign";
  readonly capabilities = weSignCapabilities;
  readonly webhooks: Record<string, WebhookContract> = webhookContracts(weSignFormat);
  readonly #transport: HttpTransport;

  constructor(transport: HttpTransport) {
    this.#transport = transport;
  }

  prepare(action: "SEND", payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(...args: PrepareArguments): PreparedRequest | Refusal {
    return args[0] === "SEND" ? prepareSend(args[1], args[2]) : prepareOnTarget(args[0], args[1]);
  }

  async submit(action: Action, request: PreparedRequest, call: CallContext): Promise<Observation> {
    if (!this.capabilities[action].supported) return { kind: "not-sent", cause: "action-not-supported" };
    if (action === "FINALIZE") return await finalize(this.#transport, request, call);
    if (action === "VOID" && (call.targetStatus === "staged" || call.targetStatus === "draft")) {
      return await discardStaged(this.#transport, call);
    }
    if (action === "SEND" && call.draftRef !== undefined) {
      return await continueDraft(this.#transport, call, call.draftRef);
    }
    const startedAt = performance.now();
    const outcome = await submitRequest(this.#transport, request, call, bearer);
    const read = acceptedBy(action, request, call);
    let documentId: string | undefined;
    const observation = classify(outcome, answersFor(action, request), (status, body, headers) => {
      documentId = usableReference(body.document_id);
      return read(status, body, headers);
    });
    if (observation.kind !== "queued") return observation;
    if (!(await reportEarly(observation, call))) return observation;
    // Staged though nobody asked for it: mailing it is the second step of this SEND.
    if (observation.recordStatus !== "staged") return observation;
    return await confirmStaged(this.#transport, rest(call, startedAt), { ref: observation.ref, documentId });
  }

  lookup(query: LookupQuery, call: LookupCall): Promise<LookupResult> {
    return weSignLookup(this.#transport, query, call);
  }

  lookupMany(query: LookupManyQuery, call: LookupCall): Promise<LookupManyResult> {
    return weSignLookupMany(this.#transport, query, call);
  }
}

type PrepareArguments =
  | [action: "SEND", payload: NeutralPayload, ids: RequestIds]
  | [action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds];

function answersFor(action: Action, request: PreparedRequest): readonly AnswerRow[] {
  return weSignAnswers[action === "SEND" && request.body.kind === "json" ? "SEND-TEMPLATE" : action];
}

function acceptedBy(action: Action, request: PreparedRequest, call: CallContext): ReadAccepted {
  if (action !== "SEND") return targetAccepted(call.targetRef ?? "");
  return sendAccepted(call, request.body.kind === "json" && asksToStage(request.body.text));
}

/** Read from the stored bytes: what was asked for is what was approved. */
function asksToStage(text: string): boolean {
  const body: unknown = JSON.parse(text);
  return typeof body === "object" && body !== null && "review" in body && body.review === true;
}

/**
 * Stored before anything else happens to it; false where it could not be, and then there is no second call. A draft only
 * where the answer says so: what was merely taken may be mailed by now.
 */
async function reportEarly(queued: Extract<Observation, { kind: "queued" }>, call: CallContext): Promise<boolean> {
  const isDraft = queued.recordStatus === "staged" || queued.recordStatus === "draft";
  try {
    await call.reportReference(queued.ref, isDraft ? "draft" : "evidence");
    return true;
  } catch {
    // The call is over and the observation carries the same reference: it is stored with that.
    return false;
  }
}
