import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const gunzipAsync = promisify(gunzip);

/** A compressed delivery that can't be taken; `statusCode` is what the sender is answered. */
export class UnpackError extends Error {
  override readonly name = "UnpackError";
  readonly statusCode: 400 | 413;
  constructor(statusCode: 400 | 413) {
    super(statusCode === 413 ? "the unpacked delivery is too large" : "the delivery is not what its encoding says");
    this.statusCode = statusCode;
  }
}

/**
 * The bytes inside a gzip body, at most `limit` of them: a small body may unpack to gigabytes, so unpacking stops there.
 * Throws {@link UnpackError}.
 */
export async function unpackGzip(body: Uint8Array, limit: number): Promise<Buffer> {
  try {
    return await gunzipAsync(body, { maxOutputLength: limit });
  } catch (error) {
    const tooLarge = error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    throw new UnpackError(tooLarge ? 413 : 400);
  }
}

/** What `content-encoding` says: nothing to unpack, gzip once, or something else (415). */
export function encodingOf(header: string | string[] | undefined): "none" | "gzip" | "other" {
  const names = [header ?? []]
    .flat()
    .flatMap((value) => value.split(","))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length === 0) return "none";
  return names.length === 1 && (names[0] === "gzip" || names[0] === "x-gzip") ? "gzip" : "other";
}
