import { v7 } from "uuid";
import { z } from "zod";

/** A new UUIDv7: unique, and ordered by the time it was made. */
export function newId(): string {
  return v7();
}

/** Tenant id, as DESIGN §9 fixes it. */
export const tenantId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit");

/** The producer's own name for what it intends: 1–255 printable ASCII characters. */
export const intentKey = z.string().regex(/^[\x20-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters");

/** Operation id: a UUIDv7 in lower case. */
export const operationId = z.uuidv7("must be a UUIDv7").toLowerCase();
