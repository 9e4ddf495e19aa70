import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";

/** Who is logged in, as the cookie carries it: nothing that a reader of the cookie could use elsewhere. */
export interface SessionClaims {
  readonly operatorId: string;
  /** Distinguishes two logins of one operator. */
  readonly nonce: string;
  /** ms since the epoch. */
  readonly expiresAt: number;
}

const claims = z.strictObject({ operatorId: z.uuid(), nonce: z.string().min(16).max(64), expiresAt: z.int() });

export const cookieName = "countersign_session";

/** Signs and reads session cookies with one key (HMAC-SHA256). */
export class SessionCookies {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  #sign(purpose: string, text: string): Buffer {
    return createHmac("sha256", this.#key).update(`${purpose}\0${text}`).digest();
  }

  seal(session: SessionClaims): string {
    const body = Buffer.from(JSON.stringify(session)).toString("base64url");
    return `v1.${body}.${this.#sign("session", body).toString("base64url")}`;
  }

  /** undefined for whatever was not sealed here, was changed, or is over at `now` (ms since the epoch). */
  open(cookie: string, now: number): SessionClaims | undefined {
    const [version, body, signature, ...rest] = cookie.split(".");
    if (version !== "v1" || body === undefined || signature === undefined || rest.length > 0) return undefined;
    if (!same(Buffer.from(signature, "base64url"), this.#sign("session", body))) return undefined;
    const read = claims.safeParse(parsed(body));
    return read.success && read.data.expiresAt > now ? read.data : undefined;
  }

  /** What a request that changes something must carry beside the cookie: no other site can read it. */
  csrfOf(session: SessionClaims): string {
    return this.#sign("csrf", session.nonce).toString("base64url");
  }

  csrfMatches(session: SessionClaims, given: string): boolean {
    return same(Buffer.from(given), Buffer.from(this.csrfOf(session)));
  }
}

const same = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

function parsed(body: string): unknown {
  try {
    return JSON.parse(Buffer.from(body, "base64url").toString());
  } catch {
    return undefined;
  }
}
