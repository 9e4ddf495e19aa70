import type { FastifyRequest } from "fastify";
import { ProviderError } from "./answer.js";
import type { RawFields } from "./draft.js";

const NO_BYTES = Buffer.alloc(0);

/** The exact bytes of a JSON body; none where there is no body. */
export function bodyBytes(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : NO_BYTES;
}

function isObject(value: unknown): value is RawFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The body as an object; an absent one is empty. @throws ProviderError 400 `invalid_json`. */
export function jsonObject(bytes: Buffer): RawFields {
  const value = jsonValue(bytes);
  if (!isObject(value)) throw new ProviderError(400, "invalid_json", "The body must be a JSON object.");
  return value;
}

/** The body as any JSON value; an absent one is an empty object. @throws ProviderError 400 `invalid_json`. */
export function jsonValue(bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new ProviderError(400, "invalid_json", "The body is not JSON.");
  }
}
