import { documentAnswer } from "@countersign/client";
import { sha256Hex } from "@countersign/runtime";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { noteSubject } from "../access-log.js";
import type { ApiDeps } from "../deps.js";
import { badRequest, ProblemError } from "../problem.js";

/** Bytes before the header that readers accept (ISO 32000, annex H). */
const headerWithin = 1_024;

/** `PUT /v1/documents`: raw PDF in, its SHA-256 out. Content-addressed, so twice is once. `GET` brings it back. */
export function documentRoutes(app: FastifyInstance, deps: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().route({
    method: "GET",
    url: "/v1/documents/:sha256",
    schema: {
      summary: "A stored PDF: an uploaded one, or a sealed one that a FINALIZE archived",
      tags: ["documents"],
      security: [{ apiKey: [] }],
      params: z.object({ sha256: sha256Hex }),
    },
    handler: async (request, reply) => {
      const { tenantId } = await deps.authenticate(request, "operations:read");
      noteSubject(request, { tenant: tenantId });
      const bytes = await deps.documents.get(tenantId, request.params.sha256);
      return reply.type("application/pdf").header("cache-control", "no-store").send(bytes);
    },
  });
  app.withTypeProvider<ZodTypeProvider>().route({
    method: "PUT",
    url: "/v1/documents",
    bodyLimit: deps.maxDocumentBytes,
    schema: {
      summary: "Upload a PDF",
      tags: ["documents"],
      security: [{ apiKey: [] }],
      consumes: ["application/pdf"],
      response: { 200: documentAnswer },
    },
    handler: async (request) => {
      const caller = await deps.authenticate(request, "documents:write");
      noteSubject(request, { tenant: caller.tenantId });
      const body: unknown = request.body;
      if (!Buffer.isBuffer(body)) {
        throw new ProblemError(
          415,
          "unsupported-media-type",
          "Send the PDF itself, with Content-Type: application/pdf",
        );
      }
      if (body.length === 0) throw badRequest("body", "the document is empty");
      if (!body.subarray(0, headerWithin).includes("%PDF-")) throw badRequest("body", "the document is not a PDF");
      return { sha256: await deps.documents.put(caller.tenantId, body), size: body.length };
    },
  });
}
