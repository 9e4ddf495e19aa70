import { reviewAnswer, reviewRequest } from "@countersign/client";
import { prepareReview } from "@countersign/client/transaction";
import { getHistory, getNearMisses, getOperation, review } from "@countersign/ledger";
import { operationId } from "@countersign/runtime";
import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { noteSubject } from "../access-log.js";
import type { ApiDeps } from "../deps.js";
import { handOverPlanned } from "../hand-over-planned.js";
import { notFound } from "../problem.js";
import { toAnswer } from "../to-answer.js";

/** A named person's decision on an operation that nobody could prove (DESIGN §3 "Review"). */
export function reviewRoutes(app: FastifyInstance, deps: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().route({
    method: "POST",
    url: "/v1/operations/:id/review",
    schema: {
      summary: "Decide an operation in NEEDS_REVIEW",
      tags: ["operations"],
      security: [{ apiKey: [] }],
      params: z.object({ id: operationId }),
      body: reviewRequest,
      response: { 200: reviewAnswer },
    },
    handler: async (request) => {
      const { tenantId } = await deps.authenticate(request, "reviews:write");
      const { id } = request.params;
      noteSubject(request, { tenant: tenantId, operation: id });
      const prepared = await prepareReview(deps.ledger, deps.planning, { tenantId, operationId: id, ...request.body });
      const decided = await review(deps.ledger, { ...prepared, quiescenceMs: deps.quiescenceMs });
      const { planned, replacement } = decided;
      handOverPlanned(deps, tenantId, replacement === undefined ? planned : [...planned, replacement]);
      const operation = await getOperation(deps.ledger, tenantId, id);
      if (operation === undefined) throw notFound("operation");
      const history = await getHistory(deps.ledger, tenantId, id);
      return {
        operation: toAnswer(operation, history, await getNearMisses(deps.ledger, tenantId, id)),
        planned: planned.map((each) => each.operationId),
        replacement: replacement?.operationId ?? null,
      };
    },
  });
}
