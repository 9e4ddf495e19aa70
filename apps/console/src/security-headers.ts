import type { FastifyInstance } from "fastify";
import { boardPath } from "./bull-board.js";

const own = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Bull Board's page names its base and sets styles in its markup. */
const board = own
  .replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
  .replace("base-uri 'none'", "base-uri 'self'");

/** Its page links fonts of another house, which nothing here may ask. */
const foreignFonts = /<link[^>]*fonts\.googleapis\.com[^>]*>/g;

/** No page here loads from, tells, or is framed by another house. */
export function securityHeaders(app: FastifyInstance): void {
  app.addHook("onSend", async (request, reply, payload: unknown) => {
    const isBoard = request.url === boardPath || request.url.startsWith(`${boardPath}/`);
    reply.headers({
      "content-security-policy": isBoard ? board : own,
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    if (/^\/(console|api)\//.test(request.url)) reply.header("cache-control", "no-store");
    const html = String(reply.getHeader("content-type") ?? "").startsWith("text/html");
    return isBoard && html && typeof payload === "string" ? payload.replace(foreignFonts, "") : payload;
  });
}
