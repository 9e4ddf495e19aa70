import type { Subject } from "./fault-plan.js";
import type { Hook } from "./hook.js";

/** Every status a request can have. `staged` and `discarded` were never sent; the four after `signed` are final. */
export const REQUEST_STATUSES = [
  "staged",
  "discarded",
  "sent",
  "viewed",
  "signed",
  "completed",
  "declined",
  "withdrawn",
  "expired",
] as const;

export type RequestStatus = (typeof REQUEST_STATUSES)[number];

/** A recipient: no name is kept. */
export interface Signer {
  readonly email: string;
  readonly role: string;
  status: "pending" | "viewed" | "signed" | "declined";
}

/** What a caller asked for, validated. */
export interface RequestDraft {
  /** `file`: a document without recipients, from a file template. */
  readonly kind: "esign" | "file";
  readonly signers: readonly { email: string; role: string }[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly sendEmails: boolean;
  readonly review: boolean;
  readonly expiresInDays: number;
  readonly callbackUrl: string | undefined;
  /** SHA-256 of the document; its bytes are not kept. */
  readonly documentDigest: string;
}

/** One document and its signing request. */
export interface SigningRequest {
  /** Order of creation, the list's cursor. */
  readonly seq: number;
  readonly id: string;
  readonly documentId: string;
  readonly workspace: string;
  readonly kind: "esign" | "file";
  readonly documentDigest: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly subject: Subject;
  readonly signers: Signer[];
  readonly sendEmails: boolean;
  readonly createdAt: number;
  readonly callback: Hook | undefined;
  status: RequestStatus;
  expiresAt: number;
  events: number;
  mails: number;
  reminders: number;
  withdrawals: number;
}

const OPEN: readonly RequestStatus[] = ["sent", "viewed", "signed"];

/** Whether recipients can still act, and it can be withdrawn. */
export function isOpen(request: SigningRequest): boolean {
  return OPEN.includes(request.status);
}

/** Whether it went out: everything but a staged or discarded document. */
export function wasSent(request: SigningRequest): boolean {
  return request.status !== "staged" && request.status !== "discarded";
}

/** The subject that metadata names, whatever else is in it. */
export function subjectOf(metadata: unknown): Subject {
  const read = (name: string): string | undefined => {
    if (typeof metadata !== "object" || metadata === null) return undefined;
    const value: unknown = Reflect.get(metadata, name);
    return typeof value === "string" ? value : undefined;
  };
  return { tenant: read("tenant"), operationId: read("operation_id"), sandbox: read("sandbox") === "true" };
}

/** The body of every answer about a request. The callback's secret is shown once, by the call that made the request. */
export function requestView(request: SigningRequest): Record<string, unknown> {
  return {
    id: request.id,
    status: request.status,
    document_id: request.documentId,
    signers: request.signers.map(({ email, role, status }) => ({ email, role, status })),
    metadata: request.metadata,
    created_at: new Date(request.createdAt).toISOString(),
    expires_at: new Date(request.expiresAt).toISOString(),
    callback: request.callback === undefined ? null : { url: request.callback.url },
  };
}

/** The answer of the call that made the request, callback secret included. */
export function createdView(request: SigningRequest): Record<string, unknown> {
  const { callback } = request;
  return {
    ...requestView(request),
    callback: callback === undefined ? null : { url: callback.url, secret: callback.secret },
  };
}
