import { existsSync } from "node:fs";
import { join } from "node:path";
import { notFound } from "@countersign/api";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance } from "fastify";

/** The built page, and its one document for every address that is the page's own. */
export async function servePage(app: FastifyInstance, folder: string): Promise<void> {
  const built = existsSync(join(folder, "index.html"));
  if (built) {
    await app.register(fastifyStatic, {
      root: join(folder, "assets"),
      prefix: "/assets/",
      immutable: true,
      maxAge: "365d",
    });
  }
  const hidden = { schema: { hide: true } };
  for (const url of ["/", "/login", "/actions", "/t/*"]) {
    app.get(url, hidden, (_request, reply) => {
      if (!built) throw notFound("The built page (npm run build makes it)");
      return reply.header("cache-control", "no-cache").sendFile("index.html", folder);
    });
  }
}
