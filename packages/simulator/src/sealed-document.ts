import { ProviderError } from "./answer.js";
import type { SigningRequest } from "./signing-request.js";
import { sha256 } from "./world.js";

/** A one-page PDF with these lines: the same lines always give the same bytes. */
export function plainPdf(lines: readonly string[]): Buffer {
  const text = lines.map((line) => `(${line.replace(/[\\()]/g, "\\$&")}) Tj T*`).join(" ");
  const content = `BT /F1 10 Tf 14 TL 50 780 Td ${text} ET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${Buffer.byteLength(content, "latin1")} >>\nstream\n${content}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let file = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const offset = Buffer.byteLength(file, "latin1");
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = Buffer.byteLength(file, "latin1");
  const entries = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const size = objects.length + 1;
  file += `xref\n0 ${size}\n0000000000 65535 f \n${entries}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, "latin1");
}

/** The sealed document of a completed request. @throws ProviderError 409 `invalid_state` before it is completed. */
export function sealedDocument(request: SigningRequest): Buffer {
  if (request.status !== "completed") {
    throw new ProviderError(409, "invalid_state", "Only a completed request has a sealed document.");
  }
  const seal = sha256("seal", request.id, request.documentDigest);
  return plainPdf(["Sealed document", request.documentId, `original sha256 ${request.documentDigest}`, `seal ${seal}`]);
}
