import { createHash } from "node:crypto";
import type { PreparedRequest, RequestPart } from "./port.js";

/** The body that goes out, and what proves that it is the approved one. */
export interface AssembledBody {
  bytes: Uint8Array;
  /** Absent where there is no body. */
  contentType?: string;
  /** SHA-256 of `bytes`, lower-case hex; stored at plan and compared before every attempt. */
  digest: string;
}

export type AssemblyFault = "document-missing" | "document-mismatch" | "boundary-in-content";

/** The request cannot be assembled as approved. Nothing has been sent. Names no content. */
export class AssemblyError extends Error {
  override readonly name = "AssemblyError";
  readonly fault: AssemblyFault;

  constructor(fault: AssemblyFault) {
    super(`the request cannot be assembled: ${fault}`);
    this.fault = fault;
  }
}

/**
 * Pure: the same request and documents give the same bytes, in every process and at any time.
 * @param documents bytes by SHA-256 (lower-case hex); each is checked against its digest
 * @throws AssemblyError
 */
export function assembleBody(request: PreparedRequest, documents: ReadonlyMap<string, Uint8Array>): AssembledBody {
  const { body } = request;
  switch (body.kind) {
    case "none":
      return { bytes: new Uint8Array(0), digest: sha256(new Uint8Array(0)) };
    case "json": {
      const bytes = Buffer.from(body.text, "utf8");
      return { bytes, contentType: "application/json", digest: sha256(bytes) };
    }
    case "multipart": {
      const bytes = multipart(body.boundary, body.parts, documents);
      return { bytes, contentType: `multipart/form-data; boundary=${body.boundary}`, digest: sha256(bytes) };
    }
  }
}

/** SHA-256 of the body as it will be sent: see `assembleBody`. @throws AssemblyError */
export function bodyDigest(request: PreparedRequest, documents: ReadonlyMap<string, Uint8Array>): string {
  return assembleBody(request, documents).digest;
}

/** Digests of the documents that a request needs, each once, in order. */
export function documentsOf(request: PreparedRequest): string[] {
  if (request.body.kind !== "multipart") return [];
  const digests = request.body.parts.flatMap((part) => (part.kind === "document" ? [part.sha256] : []));
  return [...new Set(digests)];
}

/**
 * A boundary from the operation's id alone: no clock, no attempt, no random number. `assembleBody` refuses content that
 * contains it.
 */
export function boundaryFor(tenantId: string, operationId: string): string {
  return `cs-${createHash("sha256")
    .update(JSON.stringify([tenantId, operationId]))
    .digest("hex")
    .slice(0, 48)}`;
}

function multipart(
  boundary: string,
  parts: readonly RequestPart[],
  documents: ReadonlyMap<string, Uint8Array>,
): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (const part of parts) {
    const content = part.kind === "field" ? Buffer.from(part.value, "utf8") : documentBytes(part.sha256, documents);
    if (Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes(boundary)) {
      throw new AssemblyError("boundary-in-content");
    }
    chunks.push(Buffer.from(`--${boundary}\r\n${partHead(part)}\r\n\r\n`, "utf8"), content, Buffer.from("\r\n"));
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`, "utf8"));
  return Buffer.concat(chunks);
}

function partHead(part: RequestPart): string {
  const disposition = `Content-Disposition: form-data; name="${quoted(part.name)}"`;
  if (part.kind === "field") return disposition;
  const type = /^[\w.+-]+\/[\w.+-]+$/.test(part.contentType) ? part.contentType : "application/octet-stream";
  return `${disposition}; filename="${quoted(part.fileName)}"\r\nContent-Type: ${type}`;
}

/**
 * As browsers quote (WHATWG HTML, multipart/form-data): UTF-8 as it is; quote, CR and LF percent-encoded. Backslash
 * too, since some parsers read it as an escape, and every other control character, which no name needs.
 */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a header
  return text.replace(/["\\\u0000-\u001f\u007f]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

function documentBytes(digest: string, documents: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const bytes = documents.get(digest);
  if (bytes === undefined) throw new AssemblyError("document-missing");
  if (sha256(bytes) !== digest) throw new AssemblyError("document-mismatch");
  return bytes;
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
