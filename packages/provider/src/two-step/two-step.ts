import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import { boundaryFor } from "../assemble.js";
import { type AnswerRow, classify, type ReadAccepted } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type {
  ActionCapability,
  CallContext,
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

const unavailable: ActionCapability = {
  supported: false,
  idempotency: { kind: "none", note: "Reads no key." },
  lookup: { byReference: false, byMetadata: false, documented: false, consistencyLagMs: 0, note: "Has no lookup." },
  webhookEvidence: false,
  quiescenceMs: 90_000,
  deadlineMs: 30_000,
  answerIsAuthoritative: false,
  assumed: true,
  reference: { source: "none: the poorest provider that the port has to carry", checkedOn: "2026-11-30" },
};

const answers: readonly AnswerRow[] = [
  { status: 422, code: "invalid_request", verdict: { kind: "refused" } },
  {
    status: 429,
    code: "rate_limited",
    verdict: { kind: "declined", reason: "rate-limited", defaultRetryAfterMs: 60_000 },
  },
];

const created: ReadAccepted = (httpStatus, body) => {
  const ref = usableReference(body.id);
  return ref === undefined ? undefined : { kind: "accepted", ref, httpStatus };
};

/**
 * A provider that sends in two calls (create a draft, then send it), reads no key and has neither lookup nor webhook:
 * the poorest that the port carries. Not in the registry; it shows what such an adapter has to do.
 */
export class TwoStepProvider implements SignatureProvider {
  readonly name = "two-step";
  readonly capabilities: Record<Action, ActionCapability> = {
    SEND: { ...unavailable, supported: true },
    VOID: unavailable,
    RESEND: unavailable,
    FINALIZE: unavailable,
  };
  readonly webhooks: Record<string, WebhookContract> = {};
  readonly #transport: HttpTransport;

  constructor(transport: HttpTransport) {
    this.#transport = transport;
  }

  prepare(action: "SEND", payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(...args: PrepareArguments): PreparedRequest | Refusal {
    if (args[0] !== "SEND") return { refused: true, field: "action", message: "this provider can only send" };
    return prepareDraft(args[1], args[2]);
  }

  /** The draft's reference is stored before the second call; if that cannot be done, there is no second call. */
  async submit(action: Action, request: PreparedRequest, call: CallContext): Promise<Observation> {
    if (action !== "SEND") return { kind: "not-sent", cause: "action-not-supported" };
    const startedAt = performance.now();
    const draft = classify(await submitRequest(this.#transport, request, call, bearer), answers, created);
    if (draft.kind !== "accepted") return draft;
    const known: Observation = { kind: "queued", ref: draft.ref, httpStatus: draft.httpStatus };
    try {
      await call.reportReference(draft.ref, "draft");
    } catch {
      // Not stored, so not to be continued; the reference comes back with this observation.
      return known;
    }
    const send: PreparedRequest = {
      method: "POST",
      path: `${request.path}/${encodeURIComponent(draft.ref)}/send`,
      body: { kind: "none" },
    };
    const rest = { ...call, deadlineMs: call.deadlineMs - (performance.now() - startedAt) };
    const sent = classify(await submitRequest(this.#transport, send, rest, bearer), answers, created);
    // The second call never left: there is a draft and no send, which is more than "not sent" says.
    return sent.kind === "not-sent" ? known : sent;
  }

  lookup(): Promise<LookupResult> {
    return Promise.resolve({ kind: "failed", cause: "no-lookup", ms: 0 });
  }
}

type PrepareArguments =
  | [action: "SEND", payload: NeutralPayload, ids: RequestIds]
  | [action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds];

const sendable = new Set(["schemaVersion", "documents", "signers"]);

function prepareDraft(payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal {
  const field = Object.entries(payload).find(([name, value]) => value !== undefined && !sendable.has(name))?.[0];
  const [document] = payload.documents;
  if (field !== undefined || document === undefined || payload.documents.length > 1) {
    return { refused: true, field: field ?? "documents", message: "this provider takes one document and its signers" };
  }
  return {
    method: "POST",
    path: "/drafts",
    body: {
      kind: "multipart",
      boundary: boundaryFor(ids.tenantId, ids.operationId),
      parts: [
        { kind: "field", name: "signers", value: JSON.stringify(payload.signers) },
        {
          kind: "document",
          name: "file",
          sha256: document.sha256,
          fileName: document.fileName ?? "document.pdf",
          contentType: "application/pdf",
        },
      ],
    },
  };
}
