import { readFileSync } from "node:fs";
import { createWorker, openQueues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import postgres from "postgres";
import { Agent, FormData, fetch } from "undici";
import { z } from "zod";

/**
 * What most teams start with, as its own process: a BullMQ worker that makes one HTTP call and then one UPDATE. Nothing
 * in it survives a lost answer; it is here to be measured against.
 */
const environment = z.object({
  DATABASE_URL: z.string(),
  REDIS_URL: z.string().transform((text) => (text === "" ? undefined : text)),
  PROVIDER_URL: z.string(),
  PROVIDER_KEY: z.string(),
  DOCUMENT: z.string(),
  CONCURRENCY: z.coerce.number(),
});
const env = environment.parse(process.env);
const sql = postgres(env.DATABASE_URL, { max: Math.ceil(env.CONCURRENCY / 2), onnotice: () => undefined });
const logger = createLogger({ name: "baseline", level: "warn" });
const queues = openQueues({ redisUrl: env.REDIS_URL, databaseUrl: env.DATABASE_URL, logger });
const dispatcher = new Agent({ connections: env.CONCURRENCY });
const document = new Blob([readFileSync(env.DOCUMENT)], { type: "application/pdf" });
const answer = z.object({ id: z.string() });

await queues.ready(5_000);
await createWorker({
  queues,
  queue: "notify",
  concurrency: env.CONCURRENCY,
  logger,
  handler: async ({ tenantId, subjectId }) => {
    const body = new FormData();
    body.set("file", document, "document.pdf");
    body.set("signers", JSON.stringify([{ email: "signer@example.com", role: "customer", order: 1 }]));
    body.set("metadata", JSON.stringify({ operation_id: subjectId, tenant: tenantId }));
    const response = await fetch(`${env.PROVIDER_URL}/v1/signing-requests`, {
      method: "POST",
      headers: { authorization: `Bearer ${env.PROVIDER_KEY}` },
      body,
      dispatcher,
    });
    const { id } = answer.parse(await response.json());
    await sql`UPDATE baseline_job SET provider_ref = ${id}, finished_at = now() WHERE id = ${subjectId}`;
  },
});
process.once("disconnect", () => process.exit(0));
process.once("SIGTERM", () => void sql.end({ timeout: 1 }).then(() => process.exit(0)));
process.send?.({ type: "ready" });
