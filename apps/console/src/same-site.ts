import { ProblemError } from "@countersign/api";
import type { FastifyRequest } from "fastify";

const forged = (): ProblemError =>
  new ProblemError(403, "cross-site", "This request did not come from the console's own page: reload it and try again");

/** Methods that only read. */
export const reads = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Refuses a request that another site's page may have made: its `Origin` and `Sec-Fetch-Site` are set by the browser and
 * not by the page. Without either it came from no page.
 * @throws ProblemError
 */
export function fromOwnPage(request: FastifyRequest): void {
  const { origin, host } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (typeof site === "string" && site !== "same-origin") throw forged();
  if (origin === undefined) return;
  if (!URL.canParse(origin) || new URL(origin).host !== host) throw forged();
}

/** @throws ProblemError where the header of the page's own is missing or wrong */
export function carriesToken(given: string | string[] | undefined, matches: (token: string) => boolean): void {
  if (typeof given !== "string" || !matches(given)) throw forged();
}
