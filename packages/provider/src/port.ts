import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import type { WebhookScheme } from "./webhooks/scheme.js";

/**
 * What one call to a provider proved, and nothing more (DESIGN §6, seeds/000 "What each observation actually proves").
 * `classify` maps answers to these; an adapter that throws is `ambiguous`.
 */
export type Observation =
  /** 2xx with a provider reference. `target` is set where the answer is the provider's own record of a voided target. */
  | {
      kind: "accepted";
      ref: string;
      replayed?: boolean;
      recordStatus?: ProviderStatus;
      httpStatus: number;
      /** FINALIZE: the sealed document as it was archived, SHA-256 in hex and size in bytes. */
      archivedSha256?: string;
      archivedBytes?: number;
    }
  /** Taken, not yet done: UNKNOWN with a reference, settled by looking. */
  | { kind: "queued"; ref: string; recordStatus?: ProviderStatus; httpStatus: number }
  /** Definitive refusal of this attempt: allow-listed status *and* machine code in the provider's own error form. */
  | { kind: "refused"; code: string; httpStatus: number }
  /** Declined for now (429, 401, plan or quota): allow-listed status and machine code. */
  | { kind: "declined"; reason: DeclineReason; code: string; httpStatus: number; retryAfterMs?: number }
  /** The provider holds something that contradicts our request (422 key reuse, 409 invalid_state). */
  | { kind: "conflict"; code: string; httpStatus: number }
  /** FINALIZE: the target is not complete. It was only read, so nothing was changed. */
  | { kind: "not-yet"; code: string; httpStatus: number; retryAfterMs?: number }
  /** No byte of a call that could change anything left this process (a read before it may have). */
  | { kind: "not-sent"; cause: string }
  /** Everything else: it may have been applied. */
  | { kind: "ambiguous"; cause: string; httpStatus?: number; retryAfterMs?: number };

export type ObservationKind = Observation["kind"];
export type DeclineReason = "rate-limited" | "unauthorized" | "quota";

/** What the provider says of a request, in our words; every status after `draft` and `staged` but `discarded` means that it was sent. */
export type ProviderStatus =
  | "draft"
  | "staged"
  | "sent"
  | "viewed"
  | "partially-signed"
  | "completed"
  | "declined"
  | "withdrawn"
  | "expired"
  /** A draft or staged document that was thrown away: nobody was ever mailed. */
  | "discarded";

/** One part of a prepared request. `document` parts are named by digest; the worker fills in the bytes. */
export type RequestPart =
  | { kind: "field"; name: string; value: string }
  | { kind: "document"; name: string; sha256: string; fileName: string; contentType: string };

/**
 * The request as approved: method, path, ordered parts, boundary, digest of the assembled body. Stored at plan time;
 * assembling it gives the same bytes on every attempt. No key, credential, attempt number or clock value is in it.
 */
export interface PreparedRequest {
  method: "POST" | "PUT" | "DELETE" | "GET";
  /** Path below the connection's base URL, beginning with "/". `{target_ref}` is filled in at release for VOID. */
  path: string;
  body:
    | { kind: "none" }
    | { kind: "json"; text: string }
    | { kind: "multipart"; boundary: string; parts: RequestPart[] };
  /** Which header carries the provider key; absent where the endpoint reads none. */
  idempotencyHeader?: string;
}

/** A payload the adapter cannot send is refused at plan, by the name of the field. */
export interface Refusal {
  refused: true;
  /** JSON path of the payload field, e.g. `reminders`. */
  field: string;
  message: string;
}

/** Everything one attempt needs besides the request. Never logged. */
export interface CallContext {
  baseUrl: string;
  credential: string;
  /** Sent exactly as stored in the row. */
  providerKey: string;
  tenantId: string;
  operationId: string;
  /** Bound reference of the target, for VOID, RESEND, FINALIZE. */
  targetRef?: string;
  /** Bytes of a document by digest. */
  document(sha256: string): Promise<Uint8Array>;
  /** One overall deadline for the call, in ms, from the moment it starts. */
  deadlineMs: number;
  /** Called directly before the first byte and before every further write; false: nothing (more) is written. */
  mayWrite(): boolean;
  /** A reference that became known before the call ended (draft, queued): stored at once as evidence. */
  reportReference(ref: string, role: "draft" | "evidence"): Promise<void>;
  /** A draft of this operation that exists already: only the second step is made. */
  draftRef?: string;
  /** What the ledger last knew of a VOID's target: a staged one is discarded, not withdrawn. */
  targetStatus?: ProviderStatus;
  /** Stores the sealed document of a FINALIZE and answers its SHA-256 in hex; rejects where it can't. */
  archive?(bytes: Uint8Array): Promise<string>;
  /** Waited for before every *further* call of the same attempt; false: it is not made. */
  permit?(): Promise<boolean>;
  /** Told of the provider's RateLimit headers, where an answer carries them. */
  onRateLimit?(limit: RateLimit): void;
  signal?: AbortSignal;
}

/** What is left of the provider's own rate, and in how many ms it is whole again. */
export interface RateLimit {
  remaining: number;
  resetMs: number;
}

export type LookupQuery =
  | { by: "reference"; ref: string }
  | { by: "metadata"; tenantId: string; operationId: string; createdAfter?: Date };

export interface LookupCall {
  baseUrl: string;
  credential: string;
  deadlineMs: number;
  /** Waited for before every call, pages included; false: it is not made, and the lookup failed with `no-permit`. */
  permit?(): Promise<boolean>;
  onRateLimit?(limit: RateLimit): void;
  signal?: AbortSignal;
}

/** Many operations of one tenant, by one list of everything that was made since `createdAfter`. */
export interface LookupManyQuery {
  tenantId: string;
  operationIds: readonly string[];
  createdAfter: Date;
}

export type LookupManyResult =
  /** The list was followed to its last page and every item carried its metadata. Each asked id has an entry, maybe empty. */
  | { kind: "found"; matches: ReadonlyMap<string, Match[]>; pages: number; items: number; ms: number }
  | { kind: "failed"; cause: string; retryAfterMs?: number; ms: number };

/** One request at the provider that matches tenant and operation id (re-checked item by item). */
export interface Match {
  ref: string;
  status: ProviderStatus;
  /** What the record itself carries of ours; undefined where it carries none. */
  operationId?: string;
  tenantId?: string;
}

export type LookupResult =
  /** The list was followed to its last page. An empty `matches` is *not* yet absence: `decide` says that. */
  | {
      kind: "found";
      matches: Match[];
      pages: number;
      /** Items that the filter should have left out and that were dropped here: it filters badly, or not at all. */
      otherItems?: number;
      ms: number;
    }
  /** By reference: the provider says that it knows no such request. */
  | { kind: "not-found"; ms: number }
  /** Failed, timed out, unparsable, or switched off. */
  | { kind: "failed"; cause: string; retryAfterMs?: number; ms: number };

/** Per action: control 7 of seeds/000, with the note and date of the reference that supports it. */
export interface ActionCapability {
  supported: boolean;
  idempotency:
    | { kind: "none"; note: string }
    | { kind: "natural"; repeatAnswer: string; note: string }
    | {
        kind: "keyed";
        header: string;
        scope: string;
        retentionMs: number;
        staleLockMs: number;
        changedBody: string;
        /** Errors roll back, and commit and key are one step, verified and dated. WeSign documents neither. */
        replaySafe: boolean;
        /** Machine name of the risk that a written policy would have to accept; absent where there is none. */
        replayRisk?: string;
        note: string;
      };
  lookup: {
    byReference: boolean;
    byMetadata: boolean;
    /** Does one paged list show what was made since a moment, with metadata (`lookupMany`)? */
    many?: boolean;
    /** How long the provider's list shows a request, ms; absent: no limit is documented. */
    retentionMs?: number;
    /** Poll budget per object, ms between two reads of it; absent or 0: none is documented. */
    minIntervalMs?: number;
    /** Documented by the reference? An undocumented lookup may confirm, never prove absence, until verified. */
    documented: boolean;
    consistencyLagMs: number;
    note: string;
  };
  webhookEvidence: boolean;
  /** An action of two calls: what a repeated second one answers. Absent: there is none, or repeating it isn't harmless. */
  secondStep?: { repeatAnswer: string; note: string };
  /** The allow-listed answers, for printing; made from the adapter's own table. */
  answers?: readonly { status: number; code: string; means: string; assumed: boolean }[];
  /** Safe default of the window after an attempt in which it may still commit, in ms. */
  quiescenceMs: number;
  /** One overall deadline of a call, in ms. */
  deadlineMs: number;
  /** Is a 2xx to this action the provider's own record of the effect (VOID), so that it may confirm by itself? */
  answerIsAuthoritative: boolean;
  assumed: boolean;
  reference: { source: string; checkedOn: string };
}

/** A verified webhook, in our words. */
export interface SigningEvent {
  eventId: string;
  /** Not carried by the delivery but derived: only a hint. */
  weakId?: boolean;
  type: string;
  ref: string;
  /** undefined: documented, but without meaning for the signing status. */
  status?: ProviderStatus;
  occurredAt?: string;
  operationId?: string;
  tenantId?: string;
  /** The unsigned id header said something else than the signed body; the body's id is the one above. */
  headerIdDiffers?: true;
}

export interface Uninterpretable {
  uninterpretable: true;
  reason: "not-json" | "unknown-type" | "no-reference" | "shape";
  eventId?: string;
  /** The id was derived, not carried. */
  weakId?: boolean;
  type?: string;
  headerIdDiffers?: true;
}

/** A delivery's headers as Node gives them: any case, absent, once or repeated. */
export type DeliveryHeaders = Record<string, string | string[] | undefined>;

export type VerifyResult =
  | { ok: true; secretId: string; signedAt?: number }
  /** Genuine, but an old one, or a clock is off; `signedAt` in Unix ms. */
  | { ok: false; reason: "timestamp-out-of-window"; secretId: string; signedAt: number }
  /** `unreadable-body`: the signature is in a body that can't be read. */
  | { ok: false; reason: "missing-header" | "malformed-header" | "unreadable-body" | "no-matching-signature" };

export interface WebhookSecret {
  secretId: string;
  /** The whole text, `whsec_` included where the scheme says so. */
  secret: string;
}

/** One signature scheme together with the adapter's (or the vendor's) form of events. */
export interface WebhookContract {
  readonly scheme: WebhookScheme;
  /** Over the raw bytes, constant time, every active secret; `nowMs` is Unix time in ms. Never throws. */
  verify(rawBody: Uint8Array, headers: DeliveryHeaders, secrets: readonly WebhookSecret[], nowMs: number): VerifyResult;
  /**
   * Only after `verify`. The id comes from what was signed. `storedId`: the id under which the delivery was stored, for a
   * delivery whose headers are no longer at hand. Never throws.
   */
  parse(rawBody: Uint8Array, headers: DeliveryHeaders, storedId?: string): SigningEvent | Uninterpretable;
}

export interface SignatureProvider {
  readonly name: string;
  readonly capabilities: Record<Action, ActionCapability>;
  /** Pure; called before plan. */
  prepare(action: "SEND", payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal;
  prepare(action: Exclude<Action, "SEND">, payload: TargetPayload, ids: RequestIds): PreparedRequest | Refusal;
  /** One call, no retry, no redirect. */
  submit(action: Action, request: PreparedRequest, call: CallContext): Promise<Observation>;
  lookup(query: LookupQuery, call: LookupCall): Promise<LookupResult>;
  /** Never rejects; only where the capability says `many`. */
  lookupMany?(query: LookupManyQuery, call: LookupCall): Promise<LookupManyResult>;
  readonly webhooks: Record<string, WebhookContract>;
}

export interface RequestIds {
  tenantId: string;
  operationId: string;
}
