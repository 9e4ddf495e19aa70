/** A finished answer as it is cached under a key: the bytes, not the object, so that a replay is identical. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A 2xx with a JSON body. */
export function answer(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body) };
}

/** An answer in the provider's error form, `{"error":{"code","message"}}`. Any such answer releases a key. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }

  /** The body as it is sent. */
  body(): { error: { code: string; message: string } } {
    return { error: { code: this.code, message: this.message } };
  }
}

export function notFound(): ProviderError {
  return new ProviderError(404, "not_found", "There is no such object in this workspace.");
}

export function invalidState(message: string): ProviderError {
  return new ProviderError(409, "invalid_state", message);
}

export function rateLimited(retryAfterSeconds: number): ProviderError {
  return new ProviderError(429, "rate_limited", "Too many requests.", { "retry-after": String(retryAfterSeconds) });
}
