/** Longest boundary that RFC 2046 allows, with its two dashes. */
const MAX_DELIMITER = 72;
const MAX_PARTS = 32;

/**
 * The one field of that name in a `multipart/form-data` body; undefined where the body is no such thing, ends early, or has
 * the field never or twice. The boundary is the body's own first line (RFC 2046, without a preamble), whether or not the
 * header is still at hand: so a stored body reads the same as the delivery. Parts with a file name are no fields. Never
 * throws.
 */
export function multipartField(rawBody: Uint8Array, name: string): Uint8Array | undefined {
  const body = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  const start = body.indexOf("\r\n") === 0 ? 2 : 0;
  const firstLineEnd = body.subarray(0, start + MAX_DELIMITER + 2).indexOf("\r\n", start);
  if (firstLineEnd < 0) return undefined;
  const delimiter = body.toString("latin1", start, firstLineEnd);
  if (!/^--[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]$/.test(delimiter) || delimiter.length < 3) return undefined;
  const separator = `\r\n${delimiter}`;
  let found: Uint8Array | undefined;
  let at = firstLineEnd;
  for (let parts = 0; parts < MAX_PARTS; parts += 1) {
    const next = body.indexOf(separator, at, "latin1");
    if (next < at + 2) return undefined;
    const part = body.subarray(at + 2, next);
    const headEnd = part.indexOf("\r\n\r\n");
    if (headEnd < 0) return undefined;
    if (fieldName(part.toString("latin1", 0, headEnd)) === name) {
      if (found !== undefined) return undefined;
      found = part.subarray(headEnd + 4);
    }
    at = next + separator.length;
    const after = body.toString("latin1", at, at + 2);
    if (after === "--") return found;
    if (after !== "\r\n") return undefined;
  }
  return undefined;
}

/** The name in a part's `Content-Disposition: form-data`; undefined for a file, or where it is not said exactly once. */
function fieldName(head: string): string | undefined {
  const lines = head.split("\r\n").filter((line) => /^content-disposition:/i.test(line));
  const [line] = lines;
  const disposition = /^[^:]*:\s*form-data\s*(?=;)/i.exec(line ?? "");
  if (lines.length !== 1 || line === undefined || disposition === null) return undefined;
  const names: string[] = [];
  // Parameter by parameter: a name inside a quoted file name is none.
  const parameter = /;\s*([a-z*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))\s*/giy;
  parameter.lastIndex = disposition[0].length;
  for (let match = parameter.exec(line); match !== null; match = parameter.exec(line)) {
    const key = match[1]?.toLowerCase();
    if (key === "filename" || key === "filename*") return undefined;
    if (key === "name") names.push(match[2] ?? match[3] ?? "");
  }
  return names.length === 1 ? names[0] : undefined;
}
