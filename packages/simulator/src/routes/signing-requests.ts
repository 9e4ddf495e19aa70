import type { FastifyInstance, FastifyRequest } from "fastify";
import { answer, notFound, ProviderError } from "../answer.js";
import { draftFrom, expiryDays, flag } from "../draft.js";
import type { Endpoint } from "../fault-kinds.js";
import type { Subject } from "../fault-plan.js";
import { bodyBytes, jsonObject } from "../json-body.js";
import { mutate } from "../mutate.js";
import type { Parts } from "../parts.js";
import { readSendForm, type SendForm } from "../send-form.js";
import { createdView, requestView, type SigningRequest, subjectOf } from "../signing-request.js";
import { destroySocket, sendAnswer, setRateLimitHeaders } from "../wire.js";

interface ById {
  Params: { id: string };
}

function draftFromForm(parts: Parts, form: SendForm) {
  if (form.document === undefined || (form.hasFile && form.fields.file_url !== undefined)) {
    throw new ProviderError(422, "invalid_document", "Send one document, as file or file_url.");
  }
  if (!form.document.isPdf) throw new ProviderError(422, "invalid_document", "The document is not a PDF.");
  return draftFrom(form.fields, {
    kind: "esign",
    documentDigest: form.document.digest,
    allowLoopback: parts.config.webhooks.allowLoopback,
  });
}

/** Sending, and everything that is done to one signing request afterwards. */
export function signingRequestRoutes(app: FastifyInstance, parts: Parts): void {
  app.post("/v1/signing-requests", async (request, reply) => {
    if (parts.faults.forHeaders("send")) {
      parts.audit.arrive("send", request.workspace, subjectOf(undefined));
      return destroySocket(request, reply);
    }
    const form = await readSendForm(request, parts.config.maxFileBytes);
    if (form.fields.validate_only === true) {
      parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
      draftFromForm(parts, form);
      return sendAnswer(answer(200, { valid: true }), reply);
    }
    const execute = () => {
      flag(form.fields, "validate_only", false);
      return answer(201, createdView(parts.world.create(request.workspace, draftFromForm(parts, form))));
    };
    const subject = subjectOf(form.fields.metadata);
    return mutate(
      parts,
      { endpoint: "send", workspace: request.workspace, subject, hash: form.hash, execute },
      request,
      reply,
    );
  });

  const change = (
    endpoint: Endpoint,
    route: { method: "POST" | "PATCH"; url: string },
    apply: (target: SigningRequest, request: FastifyRequest<ById>) => void,
  ) =>
    app.route<ById>({
      ...route,
      handler: (request, reply) => {
        const target = parts.world.find(request.workspace, request.params.id);
        const subject: Subject = { ...(target?.subject ?? subjectOf(undefined)), reference: target?.id };
        const execute = () => {
          if (target === undefined) throw notFound();
          apply(target, request);
          return answer(200, requestView(target));
        };
        return mutate(parts, { endpoint, workspace: request.workspace, subject, execute }, request, reply);
      },
    });

  change("update", { method: "PATCH", url: "/v1/signing-requests/:id" }, (target, request) =>
    parts.world.setExpiry(target, expiryDays(jsonObject(bodyBytes(request)))),
  );
  change("remind", { method: "POST", url: "/v1/signing-requests/:id/remind" }, (target) => parts.world.remind(target));
  change("withdraw", { method: "POST", url: "/v1/signing-requests/:id/withdraw" }, (target) =>
    parts.world.withdraw(target),
  );
}
