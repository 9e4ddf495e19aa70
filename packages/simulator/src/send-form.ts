import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { request as httpRequest } from "undici";
import { ProviderError } from "./answer.js";
import type { RawFields } from "./draft.js";
import { sha256 } from "./world.js";

/** The body fields that are part of the request hash, besides the PDF's bytes. Others are not. */
const HASHED_FIELDS = [
  "signers",
  "placement",
  "fields",
  "observer_emails",
  "callback_url",
  "signing_mode",
  "locale",
  "expires_in_days",
  "placement_assignee_email",
  "file_url",
  "filename",
  "metadata",
  "send_emails",
] as const;

/** Form fields that carry JSON; the others are plain text. */
const JSON_FIELDS = ["signers", "placement", "fields", "observer_emails", "metadata"];
const NUMBER_FIELDS = ["expires_in_days"];
const FLAG_FIELDS = ["send_emails", "validate_only", "review"];

const FETCH_TIMEOUT_MS = 10_000;

interface DocumentFacts {
  readonly digest: string;
  readonly isPdf: boolean;
}

/** A send, read from its form. Of the document only digest and form are kept. */
export interface SendForm {
  /** Whether the document came as a file part. */
  readonly hasFile: boolean;
  /** The fields as values; one that should carry JSON and does not is kept as its text, and fails its check later. */
  readonly fields: RawFields;
  readonly document: DocumentFacts | undefined;
  /** The request hash of the idempotency contract. */
  readonly hash: string;
}

/** Reads the multipart body to its end. @throws ProviderError for a body that is no form, or too large a file. */
export async function readSendForm(request: FastifyRequest, maxFileBytes: number): Promise<SendForm> {
  if (!request.isMultipart()) {
    throw new ProviderError(415, "unsupported_media_type", "This endpoint takes multipart/form-data.");
  }
  const texts = new Map<string, string>();
  let document: DocumentFacts | undefined;
  let multipartFilename: string | undefined;
  for await (const part of request.parts({ limits: { fileSize: maxFileBytes } })) {
    if (part.type === "field") {
      texts.set(part.fieldname, typeof part.value === "string" ? part.value : JSON.stringify(part.value));
      continue;
    }
    const facts = await inspect(part.file);
    if (part.file.truncated) throw new ProviderError(413, "document_too_large", "The document is too large.");
    if (part.fieldname !== "file") continue;
    document = facts;
    multipartFilename = part.filename;
  }
  const hasFile = document !== undefined;
  const url = texts.get("file_url");
  if (document === undefined && url !== undefined) document = await fetchDocument(url, maxFileBytes);
  return { hasFile, fields: valuesOf(texts), document, hash: hashOf(texts, document, multipartFilename) };
}

function hashOf(texts: ReadonlyMap<string, string>, document: DocumentFacts | undefined, filename?: string): string {
  const recognised = HASHED_FIELDS.map((name) => [name, texts.get(name) ?? null]);
  return sha256(JSON.stringify([document?.digest ?? null, filename ?? null, recognised]));
}

async function inspect(chunks: AsyncIterable<Uint8Array>): Promise<DocumentFacts> {
  const hash = createHash("sha256");
  let head = Buffer.alloc(0);
  for await (const chunk of chunks) {
    hash.update(chunk);
    if (head.length < 5) head = Buffer.concat([head, chunk]).subarray(0, 5);
  }
  return { digest: hash.digest("hex"), isPdf: head.toString("latin1") === "%PDF-" };
}

function valuesOf(texts: ReadonlyMap<string, string>): RawFields {
  return Object.fromEntries([...texts].map(([name, text]) => [name, fieldValue(name, text)]));
}

function fieldValue(name: string, text: string): unknown {
  if (NUMBER_FIELDS.includes(name)) return text.trim() === "" ? text : Number(text);
  if (FLAG_FIELDS.includes(name)) return text === "true" ? true : text === "false" ? false : text;
  if (!JSON_FIELDS.includes(name)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text;
  }
}

async function fetchDocument(url: string, maxFileBytes: number): Promise<DocumentFacts> {
  const refuse = () => new ProviderError(422, "invalid_file_url", "The document could not be fetched.");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw refuse();
  try {
    const response = await httpRequest(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    const bytes = await response.body.arrayBuffer();
    if (response.statusCode !== 200 || bytes.byteLength > maxFileBytes) throw refuse();
    return await inspect(chunksOf(new Uint8Array(bytes)));
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    throw refuse();
  }
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
