import type { PreparedRequest } from "@countersign/provider";
import { z } from "zod";

const part = z.union([
  z.strictObject({ kind: z.literal("field"), name: z.string(), value: z.string() }),
  z.strictObject({
    kind: z.literal("document"),
    name: z.string(),
    sha256: z.string(),
    fileName: z.string(),
    contentType: z.string(),
  }),
]);

const schema = z.strictObject({
  method: z.enum(["POST", "PUT", "DELETE", "GET"]),
  path: z.string().startsWith("/"),
  body: z.union([
    z.strictObject({ kind: z.literal("none") }),
    z.strictObject({ kind: z.literal("json"), text: z.string() }),
    z.strictObject({ kind: z.literal("multipart"), boundary: z.string(), parts: z.array(part) }),
  ]),
  idempotencyHeader: z.string().optional(),
});

/** The stored request as the adapter reads it; undefined where it is not one. */
export function preparedRequest(stored: unknown): PreparedRequest | undefined {
  const result = schema.safeParse(stored);
  if (!result.success) return undefined;
  const { idempotencyHeader, ...request } = result.data;
  return idempotencyHeader === undefined ? request : { ...request, idempotencyHeader };
}
