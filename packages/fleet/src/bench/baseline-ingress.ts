import { providerByName } from "@countersign/provider";
import { Queue } from "bullmq";
import Fastify from "fastify";
import { Redis } from "ioredis";
import postgres from "postgres";
import { z } from "zod";

/**
 * What most teams start with, as its own process and on the HTTP server that ours runs on: verify, then hand the event to
 * BullMQ or write it in a transaction of its own, then 2xx. It is here to be measured against.
 */
const environment = z.object({
  BASELINE: z.enum(["queue.add", "transaction"]),
  DATABASE_URL: z.string(),
  REDIS_URL: z.string(),
  DATABASE_POOL: z.coerce.number(),
  SECRET: z.string(),
});
const env = environment.parse(process.env);
const event = z.object({ id: z.string(), type: z.string() });

interface Store {
  add(id: string, type: string, body: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** An append-only file that is synced each second: what is acknowledged may be lost for that long. */
function queueStore(): Store {
  const connection = new Redis(env.REDIS_URL, { maxRetriesPerRequest: null });
  const queue = new Queue("webhooks", { connection });
  return {
    add: async (id, _type, body) => void (await queue.add("event", { body: body.toString() }, { jobId: id })),
    close: async () => {
      await queue.close();
      connection.disconnect();
    },
  };
}

function transactionStore(): Store {
  const sql = postgres(env.DATABASE_URL, { max: env.DATABASE_POOL, onnotice: () => undefined });
  return {
    add: async (id, type, body) => {
      await sql.begin(async (transaction) => {
        await transaction`INSERT INTO baseline_inbox (event_id, type) VALUES (${id}, ${type}) ON CONFLICT DO NOTHING`;
        await transaction`INSERT INTO baseline_body (event_id, bytes) VALUES (${id}, ${body}) ON CONFLICT DO NOTHING`;
      });
    },
    close: () => sql.end({ timeout: 1 }),
  };
}

const contract = providerByName("wesign")?.webhooks.elchi;
if (contract === undefined) throw new Error("this build has no verifier for elchi");
const secrets = [{ secretId: "only", secret: env.SECRET }];
const store = env.BASELINE === "queue.add" ? queueStore() : transactionStore();
const app = Fastify({ logger: false });
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
app.post("/webhooks", async (request, reply) => {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  if (!contract.verify(body, request.headers, secrets, Date.now()).ok) return reply.code(401).send("unauthorized");
  const { id, type } = event.parse(JSON.parse(body.toString()));
  await store.add(id, type, body);
  return reply.code(200).send("ok");
});

const stop = async (): Promise<void> => {
  await app.close();
  await store.close();
  process.exit(0);
};
process.once("disconnect", () => process.exit(0));
process.once("SIGTERM", () => void stop());
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.send?.({ type: "ready", url });
