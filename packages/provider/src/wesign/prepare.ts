import type { Action, NeutralPayload, TargetPayload } from "@countersign/runtime";
import { boundaryFor } from "../assemble.js";
import type { PreparedRequest, Refusal, RequestIds, RequestPart } from "../port.js";
import { usableReference } from "../reference.js";
import { recordRequest } from "./record.js";

const IDEMPOTENCY_HEADER = "Idempotency-Key";
const DEFAULT_FILE_NAME = "document.pdf";

/**
 * The request of a SEND: a file goes to `/v1/signing-requests`, a template to its `/instantiate`. Only fields that the
 * provider recognises; every other one is refused by name. Never `file_url` (a replay fetches it again), `callback_url`
 * (its secret is lost with a lost answer) or `validate_only`.
 */
export function prepareSend(payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal {
  const refusal = unsendable(payload);
  if (refusal !== undefined) return refusal;
  return payload.template === undefined ? fileSend(payload, ids) : templateSend(payload, payload.template, ids);
}

/** The request of VOID, RESEND and FINALIZE (which only reads); `{target_ref}` is filled in when it is sent. Neither endpoint reads a key or a body. */
export function prepareOnTarget(action: Exclude<Action, "SEND">, payload: TargetPayload): PreparedRequest | Refusal {
  if (payload.message !== undefined) return refused("message", "this provider's endpoint takes no message");
  switch (action) {
    case "VOID":
      return { method: "POST", path: "/v1/signing-requests/{target_ref}/withdraw", body: { kind: "none" } };
    case "RESEND":
      return { method: "POST", path: "/v1/signing-requests/{target_ref}/remind", body: { kind: "none" } };
    case "FINALIZE":
      return recordRequest;
  }
}

function unsendable(payload: NeutralPayload): Refusal | undefined {
  if (payload.message !== undefined) return refused("message", "this provider takes no message to the signers");
  if (payload.reminders !== undefined) return refused("reminders", "this provider takes no reminder schedule");
  for (const name of ["operation_id", "tenant"]) {
    if (payload.metadata !== undefined && Object.hasOwn(payload.metadata, name)) {
      return refused(`metadata.${name}`, "this name is ours: lookups rely on it");
    }
  }
  return payload.template === undefined
    ? unsendableAsFile(payload)
    : unsendableAsTemplate(payload, payload.template.id);
}

function unsendableAsFile(payload: NeutralPayload): Refusal | undefined {
  if (payload.documents.length !== 1)
    return refused("documents", "this provider takes exactly one document per request");
  const other = payload.fields?.findIndex((field) => field.document !== 0) ?? -1;
  if (other >= 0) return refused(`fields[${other}].document`, "there is only document 0");
  if (payload.stageOnly === true)
    return refused("stageOnly", "this provider stages only requests made from a template");
  return undefined;
}

function unsendableAsTemplate(payload: NeutralPayload, templateId: string): Refusal | undefined {
  if (payload.documents.length > 0) return refused("documents", "a request from a template takes no document");
  if (payload.fields !== undefined) return refused("fields", "a request from a template has the template's fields");
  if (usableReference(templateId) === undefined)
    return refused("template.id", "this is no template id of this provider");
  return undefined;
}

function fileSend(payload: NeutralPayload, ids: RequestIds): PreparedRequest | Refusal {
  const [document] = payload.documents;
  if (document === undefined) return refused("documents", "a document is needed");
  const fileName = document.fileName ?? DEFAULT_FILE_NAME;
  const parts: RequestPart[] = [
    { kind: "document", name: "file", sha256: document.sha256, fileName, contentType: "application/pdf" },
  ];
  for (const [name, value] of Object.entries(sharedFields(payload, ids))) {
    parts.push({ kind: "field", name, value: typeof value === "string" ? value : JSON.stringify(value) });
  }
  return {
    method: "POST",
    path: "/v1/signing-requests",
    body: { kind: "multipart", boundary: boundaryFor(ids.tenantId, ids.operationId), parts },
    idempotencyHeader: IDEMPOTENCY_HEADER,
  };
}

function templateSend(
  payload: NeutralPayload,
  template: NonNullable<NeutralPayload["template"]>,
  ids: RequestIds,
): PreparedRequest {
  const body = {
    ...(template.values === undefined ? {} : { values: template.values }),
    ...sharedFields(payload, ids),
    ...(payload.stageOnly === true ? { review: true } : {}),
  };
  return {
    method: "POST",
    path: `/v1/templates/${encodeURIComponent(template.id)}/instantiate`,
    // The provider hashes these bytes, member order included: the text is stored, never built again.
    body: { kind: "json", text: JSON.stringify(body) },
    idempotencyHeader: IDEMPOTENCY_HEADER,
  };
}

/** The provider's names, in the one order in which they are sent. Absent stays absent: no default of ours is sent. */
function sharedFields(payload: NeutralPayload, ids: RequestIds): Record<string, unknown> {
  const shared: Record<string, unknown> = { signers: signersOf(payload) };
  if (payload.fields !== undefined) shared.fields = payload.fields.map(({ document: _, ...field }) => field);
  if (payload.observers !== undefined) shared.observer_emails = payload.observers;
  if (payload.signingMode !== undefined) shared.signing_mode = payload.signingMode;
  if (payload.locale !== undefined) shared.locale = payload.locale;
  if (payload.expiresInDays !== undefined) shared.expires_in_days = payload.expiresInDays;
  shared.metadata = { operation_id: ids.operationId, tenant: ids.tenantId, ...payload.metadata };
  return shared;
}

/** In signing order, addresses exactly as approved. */
function signersOf(payload: NeutralPayload): unknown[] {
  return payload.signers
    .toSorted((a, b) => a.order - b.order)
    .map(({ email, role, order, name }) => ({ email, role, order, ...(name === undefined ? {} : { name }) }));
}

function refused(field: string, message: string): Refusal {
  return { refused: true, field, message };
}
