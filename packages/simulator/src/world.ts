import { createHash, randomUUID } from "node:crypto";
import { invalidState, notFound, ProviderError } from "./answer.js";
import type { Clock } from "./clock.js";
import type { SimulatorConfig } from "./config.js";
import { isOpen, type RequestDraft, type RequestStatus, type SigningRequest, subjectOf } from "./signing-request.js";
import type { Webhooks } from "./webhooks.js";

const DAY_MS = 86_400_000;

/** What the list is asked for. */
export interface ListQuery {
  readonly metadata: ReadonlyMap<string, string>;
  readonly createdAfter: number | undefined;
  /** Only requests created before this sequence number: the list runs from new to old. */
  readonly before: number | undefined;
  readonly limit: number;
  /** Requests younger than this are not shown. */
  readonly lagMs: number;
}

/**
 * Everything the provider holds. Each method commits at once and synchronously: there is no moment at which half of a
 * change is visible.
 */
export class World {
  readonly #clock: Clock;
  readonly #config: SimulatorConfig;
  readonly #webhooks: Webhooks;
  readonly #requests = new Map<string, SigningRequest>();
  readonly #byDocument = new Map<string, SigningRequest>();
  #nextSeq = 1;
  /** Called after each change of status; the life cycle hangs on it. */
  onSent: (request: SigningRequest) => void = () => undefined;

  constructor(clock: Clock, config: SimulatorConfig, webhooks: Webhooks) {
    this.#clock = clock;
    this.#config = config;
    this.#webhooks = webhooks;
  }

  /** Creates a document and, unless it is staged for review, sends it. @throws ProviderError 503 `capacity`. */
  create(workspace: string, draft: RequestDraft): SigningRequest {
    if (this.#requests.size >= this.#config.maxRequests) {
      throw new ProviderError(503, "capacity", "This simulator holds as many requests as it may.");
    }
    const now = this.#clock.now();
    const callback =
      draft.callbackUrl === undefined ? undefined : this.#webhooks.forCallback(workspace, draft.callbackUrl);
    const request: SigningRequest = {
      seq: this.#nextSeq++,
      id: newId("sr"),
      documentId: newId("doc"),
      workspace,
      kind: draft.kind,
      documentDigest: draft.documentDigest,
      metadata: draft.metadata,
      subject: subjectOf(draft.metadata),
      signers: draft.signers.map(({ email, role }) => ({ email, role, status: "pending" })),
      sendEmails: draft.sendEmails,
      createdAt: now,
      callback,
      status: "staged",
      expiresAt: now + draft.expiresInDays * DAY_MS,
      events: 0,
      mails: 0,
      reminders: 0,
      withdrawals: 0,
    };
    this.#requests.set(request.id, request);
    this.#byDocument.set(request.documentId, request);
    if (draft.review) this.#webhooks.emit(request, "template_instance.staged");
    else this.#send(request);
    return request;
  }

  /** @throws ProviderError 404, also for another workspace's request. */
  get(workspace: string | undefined, id: string): SigningRequest {
    const request = this.#requests.get(id);
    if (request === undefined || (workspace !== undefined && request.workspace !== workspace)) throw notFound();
    return request;
  }

  /** The request of that id in this workspace. */
  find(workspace: string, id: string): SigningRequest | undefined {
    return owned(workspace, this.#requests.get(id));
  }

  /** The request of that document in this workspace. */
  findByDocument(workspace: string, documentId: string): SigningRequest | undefined {
    return owned(workspace, this.#byDocument.get(documentId));
  }

  /** One page from new to old, and whether there is more. */
  list(workspace: string, query: ListQuery): { page: SigningRequest[]; hasMore: boolean } {
    const now = this.#clock.now();
    const found = [...this.#requests.values()]
      .filter(
        (request) =>
          request.workspace === workspace &&
          (query.before === undefined || request.seq < query.before) &&
          (query.createdAfter === undefined || request.createdAt > query.createdAfter) &&
          (query.lagMs === 0 || request.createdAt + query.lagMs <= now) &&
          [...query.metadata].every(([name, value]) => request.metadata[name] === value),
      )
      .sort((a, b) => b.seq - a.seq);
    return { page: found.slice(0, query.limit), hasMore: found.length > query.limit };
  }

  all(): IterableIterator<SigningRequest> {
    return this.#requests.values();
  }

  /** Sends a staged document; false when that was done before, and nothing is sent then. */
  confirm(request: SigningRequest): boolean {
    if (request.status === "discarded") throw invalidState("The document was discarded.");
    if (request.status !== "staged") return false;
    this.#send(request);
    return true;
  }

  /** Discards a staged document; false when that was done before. A file-only instance is deleted. */
  discard(request: SigningRequest): boolean {
    if (request.status === "discarded") return false;
    if (request.status !== "staged") throw invalidState("The document was already confirmed.");
    request.status = "discarded";
    if (request.kind === "file") {
      this.#requests.delete(request.id);
      this.#byDocument.delete(request.documentId);
    }
    return true;
  }

  /** @throws ProviderError 409 `invalid_state` unless recipients can still act. */
  withdraw(request: SigningRequest): void {
    if (!isOpen(request)) throw invalidState(`A request that is ${request.status} cannot be withdrawn.`);
    request.status = "withdrawn";
    request.withdrawals += 1;
    this.#webhooks.emit(request, "signing_request.withdrawn");
  }

  /** Mails every recipient who has not acted, each time it is called. */
  remind(request: SigningRequest): void {
    if (!isOpen(request)) throw invalidState(`A request that is ${request.status} cannot be reminded of.`);
    request.reminders += 1;
    request.mails += request.signers.filter(({ status }) => status === "pending" || status === "viewed").length;
  }

  /** Sets the expiry, counted from creation: the same number again changes nothing. */
  setExpiry(request: SigningRequest, days: number): void {
    if (!isOpen(request) && request.status !== "staged") {
      throw invalidState(`A request that is ${request.status} cannot be changed.`);
    }
    request.expiresAt = request.createdAt + days * DAY_MS;
  }

  /** What recipients or time do to it. @throws ProviderError 409 when it is over, or was never sent. */
  advance(request: SigningRequest, status: "viewed" | "signed" | "completed" | "declined" | "expired"): void {
    if (!isOpen(request)) throw invalidState(`A request that is ${request.status} does not move.`);
    request.status = status;
    const signerStatus = { viewed: "viewed", signed: "signed", completed: "signed", declined: "declined" } as const;
    if (status !== "expired") for (const signer of request.signers) signer.status = signerStatus[status];
    this.#webhooks.emit(request, `signing_request.${status}`);
  }

  /** Expires what is past its time. */
  expireDue(): void {
    const now = this.#clock.now();
    for (const request of this.#requests.values()) {
      if (isOpen(request) && request.expiresAt <= now) this.advance(request, "expired");
    }
  }

  #send(request: SigningRequest): void {
    const status: RequestStatus = request.kind === "file" ? "completed" : "sent";
    request.status = status;
    if (request.kind === "file") return;
    if (request.sendEmails) request.mails += request.signers.length;
    this.#webhooks.emit(request, "signing_request.sent");
    this.onSent(request);
  }
}

function owned(workspace: string, request: SigningRequest | undefined): SigningRequest | undefined {
  return request?.workspace === workspace ? request : undefined;
}

function newId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll("-", "")}`;
}

/** SHA-256 in hex. */
export function sha256(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
