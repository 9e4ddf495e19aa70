import type { FastifyInstance, FastifyRequest } from "fastify";
import { answer, notFound, ProviderError } from "../answer.js";
import { draftFrom, flag, type RawFields } from "../draft.js";
import { bodyBytes, jsonObject } from "../json-body.js";
import { mutate } from "../mutate.js";
import type { Parts } from "../parts.js";
import { plainPdf } from "../sealed-document.js";
import { createdView, requestView, type SigningRequest, subjectOf } from "../signing-request.js";
import { destroySocket, sendAnswer, setRateLimitHeaders } from "../wire.js";
import { sha256 } from "../world.js";

interface ById {
  Params: { id: string };
}

function templateOf(parts: Parts, id: string) {
  const template = parts.config.templates.find((candidate) => candidate.id === id);
  if (template === undefined) throw notFound();
  return template;
}

function draftOf(parts: Parts, templateId: string, bytes: Buffer, body: RawFields) {
  const { kind, autoStage } = templateOf(parts, templateId);
  const { allowLoopback } = parts.config.webhooks;
  const draft = draftFrom(body, { kind, documentDigest: sha256(templateId, "\0", bytes), allowLoopback });
  return { ...draft, review: draft.review || autoStage };
}

/** The body as far as it can be read: a broken one is refused later, in its place in the order of checks. */
function leniently(bytes: Buffer): RawFields {
  try {
    return jsonObject(bytes);
  } catch (error) {
    if (error instanceof ProviderError) return {};
    throw error;
  }
}

/** Making documents of templates, and deciding about those that were staged for review. */
export function templateRoutes(app: FastifyInstance, parts: Parts): void {
  app.post<ById>("/v1/templates/:id/instantiate", async (request, reply) => {
    const bytes = bodyBytes(request);
    const { id } = request.params;
    if (parts.faults.forHeaders("instantiate")) {
      parts.audit.arrive("instantiate", request.workspace, subjectOf(undefined));
      return destroySocket(request, reply);
    }
    const body = leniently(bytes);
    if (body.validate_only === true) {
      // A dry run never reads the key and is never cached.
      parts.limiter.take(request.workspace, setRateLimitHeaders(reply));
      draftOf(parts, id, bytes, body);
      return sendAnswer(answer(200, { valid: true }), reply);
    }
    const execute = () => {
      const draft = draftOf(parts, id, bytes, jsonObject(bytes));
      flag(body, "validate_only", false);
      return answer(draft.review ? 201 : 200, createdView(parts.world.create(request.workspace, draft)));
    };
    const subject = subjectOf(body.metadata);
    const { workspace } = request;
    return mutate(parts, { endpoint: "instantiate", workspace, subject, hash: sha256(bytes), execute }, request, reply);
  });

  app.post<ById>("/v1/templates/:id/generate", async (request, reply) => {
    const bytes = bodyBytes(request);
    const body = leniently(bytes);
    const { workspace, params } = request;
    if (body.review !== true) {
      parts.limiter.take(workspace, setRateLimitHeaders(reply));
      templateOf(parts, params.id);
      jsonObject(bytes);
      return reply.type("application/pdf").send(plainPdf(["Generated document", sha256(params.id, "\0", bytes)]));
    }
    const execute = () => {
      const draft = { ...draftOf(parts, params.id, bytes, { ...body, signers: undefined }), kind: "file" as const };
      return answer(201, createdView(parts.world.create(workspace, draft)));
    };
    return mutate(
      parts,
      { endpoint: "generate", workspace, subject: subjectOf(body.metadata), execute },
      request,
      reply,
    );
  });

  documentRoutes(app, parts);
}

function documentRoutes(app: FastifyInstance, parts: Parts): void {
  const decide = (endpoint: "confirm" | "discard", apply: (document: SigningRequest) => Record<string, unknown>) =>
    app.post<ById>(`/v1/documents/:id/${endpoint}`, (request: FastifyRequest<ById>, reply) => {
      const { workspace } = request;
      const document: SigningRequest | undefined = parts.world.findByDocument(workspace, request.params.id);
      const execute = () => {
        if (document === undefined) throw notFound();
        const more = apply(document);
        return answer(200, { ...requestView(document), ...more });
      };
      const subject = { ...(document?.subject ?? subjectOf(undefined)), reference: document?.id };
      return mutate(parts, { endpoint, workspace, subject, execute }, request, reply);
    });

  decide("confirm", (document) => {
    const sentNow = parts.world.confirm(document);
    const recipients = sentNow ? document.signers.map(({ email, role }) => ({ email, role })) : [];
    return {
      ...(sentNow ? {} : { already_confirmed: true }),
      ...(document.kind === "esign" ? { recipients } : {}),
    };
  });
  decide("discard", (document) => (parts.world.discard(document) ? { discarded: true } : { already_discarded: true }));
}
