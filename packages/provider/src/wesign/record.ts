import { classify } from "../classify.js";
import type { HttpTransport } from "../http-call.js";
import type { CallContext, Observation, PreparedRequest } from "../port.js";
import { usableReference } from "../reference.js";
import type { JsonObject } from "../strict-json.js";
import { bearer, submitFurther, submitRequest } from "../submit-request.js";
import { weSignAnswers } from "./answers.js";

/** A request's own record, or what the read proved instead. */
export type RecordRead = { record: JsonObject } | { observation: Observation };

/** GET of a request by the reference that the call carries. `further`: it is not the attempt's first call. */
export async function readRecord(
  transport: HttpTransport,
  request: PreparedRequest,
  call: CallContext,
  further: boolean,
): Promise<RecordRead> {
  const outcome = further
    ? await submitFurther(transport, request, call, bearer)
    : await submitRequest(transport, request, call, bearer);
  let record: JsonObject | undefined;
  const observation = classify(outcome, weSignAnswers.FINALIZE, (httpStatus, body) => {
    if (httpStatus === 200 && usableReference(body.id) === call.targetRef) record = body;
    return undefined;
  });
  return record === undefined ? { observation } : { record };
}

/** The read of a target by its reference. */
export const recordRequest: PreparedRequest = {
  method: "GET",
  path: "/v1/signing-requests/{target_ref}",
  body: { kind: "none" },
};

/** The rest of the attempt's one deadline. */
export function rest(call: CallContext, startedAt: number): CallContext {
  return { ...call, deadlineMs: call.deadlineMs - (performance.now() - startedAt) };
}
