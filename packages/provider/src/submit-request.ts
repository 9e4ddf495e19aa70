import { type AssembledBody, AssemblyError, assembleBody, documentsOf } from "./assemble.js";
import type { CallOutcome, HttpTransport } from "./http-call.js";
import type { CallContext, PreparedRequest } from "./port.js";
import { rateLimitOf } from "./rate-limit.js";
import { usableReference } from "./reference.js";

/** How a provider takes its credential. */
export type Authorize = (credential: string) => Record<string, string>;

/** `Authorization: Bearer …`. */
export const bearer: Authorize = (credential) => ({ authorization: `Bearer ${credential}` });

/**
 * Assembles the stored request and makes its one call, inside the one deadline. What cannot be assembled, or lacks its
 * key or target, is never written.
 */
export async function submitRequest(
  transport: HttpTransport,
  request: PreparedRequest,
  call: CallContext,
  authorize: Authorize,
): Promise<CallOutcome> {
  const startedAt = performance.now();
  const path = pathOf(request, call.targetRef);
  if (path === undefined) return { kind: "nothing-written", cause: "no-target-reference" };
  const key = keyHeader(request, call.providerKey);
  if (key === undefined) return { kind: "nothing-written", cause: "bad-provider-key" };
  const body = await assembled(request, call);
  if (typeof body === "string") return { kind: "nothing-written", cause: body };
  const outcome = await transport.send({
    method: request.method,
    baseUrl: call.baseUrl,
    path,
    headers: {
      accept: "application/json",
      ...authorize(call.credential),
      ...key,
      ...(body.contentType === undefined ? {} : { "content-type": body.contentType }),
    },
    ...(body.bytes.byteLength === 0 ? {} : { body: body.bytes }),
    deadlineMs: call.deadlineMs - (performance.now() - startedAt),
    mayWrite: () => call.mayWrite(),
    ...(call.signal === undefined ? {} : { signal: call.signal }),
  });
  tellRateLimit(outcome, call);
  return outcome;
}

/** A further call of the same attempt: only with a permit of its own. */
export async function submitFurther(
  transport: HttpTransport,
  request: PreparedRequest,
  call: CallContext,
  authorize: Authorize,
): Promise<CallOutcome> {
  if (!(await permitted(call))) return { kind: "nothing-written", cause: "no-permit" };
  return await submitRequest(transport, request, call, authorize);
}

/** May one more call be made over this connection? A permit that can't be had is none. */
export async function permitted(call: Pick<CallContext, "permit">): Promise<boolean> {
  try {
    return call.permit === undefined || (await call.permit());
  } catch {
    return false;
  }
}

/**
 * Hands on what an answer says of the provider's own rate. A 429 says it better itself: its `Retry-After` is when to come
 * back, while the headers may speak of a longer window.
 */
export function tellRateLimit(outcome: CallOutcome, call: Pick<CallContext, "onRateLimit">): void {
  if (outcome.kind !== "response" || outcome.status === 429 || call.onRateLimit === undefined) return;
  const limit = rateLimitOf(outcome.headers, outcome.receivedAtMs);
  if (limit !== undefined) call.onRateLimit(limit);
}

function pathOf(request: PreparedRequest, targetRef: string | undefined): string | undefined {
  if (!request.path.includes("{target_ref}")) return request.path;
  const ref = usableReference(targetRef);
  return ref === undefined ? undefined : request.path.replaceAll("{target_ref}", () => encodeURIComponent(ref));
}

function keyHeader(request: PreparedRequest, providerKey: string): Record<string, string> | undefined {
  if (request.idempotencyHeader === undefined) return {};
  return /^[\x21-\x7e]{1,255}$/.test(providerKey) ? { [request.idempotencyHeader]: providerKey } : undefined;
}

async function assembled(request: PreparedRequest, call: CallContext): Promise<AssembledBody | string> {
  const documents = new Map<string, Uint8Array>();
  try {
    for (const digest of documentsOf(request)) documents.set(digest, await call.document(digest));
  } catch {
    // Whatever kept the bytes from us, nothing has been sent; the store has its own log.
    return "document-unreadable";
  }
  try {
    return assembleBody(request, documents);
  } catch (error) {
    if (error instanceof AssemblyError) return error.fault;
    throw error;
  }
}
