import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AssemblyError, assembleBody, bodyDigest, boundaryFor, documentsOf } from "./assemble.js";
import type { PreparedRequest, RequestPart } from "./port.js";
import { documentBytes, documentDigest } from "./testing/requests.js";

const documents = new Map([[documentDigest, documentBytes]]);
const request = (parts: RequestPart[], boundary = "cs-b"): PreparedRequest => ({
  method: "POST",
  path: "/x",
  body: { kind: "multipart", boundary, parts },
});
const documentPart = (fileName = "document.pdf"): RequestPart => ({
  kind: "document",
  name: "file",
  sha256: documentDigest,
  fileName,
  contentType: "application/pdf",
});
const faultOf = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return error instanceof AssemblyError ? error.fault : error;
  }
  return undefined;
};

describe("an assembled body", () => {
  it("is these bytes, and its digest is over them", () => {
    const body = assembleBody(request([documentPart(), { kind: "field", name: "locale", value: "en" }]), documents);
    const expected =
      '--cs-b\r\nContent-Disposition: form-data; name="file"; filename="document.pdf"\r\n' +
      "Content-Type: application/pdf\r\n\r\n%PDF-1.7 a contract\r\n" +
      '--cs-b\r\nContent-Disposition: form-data; name="locale"\r\n\r\nen\r\n--cs-b--\r\n';
    expect(Buffer.from(body.bytes).toString()).toBe(expected);
    expect(body.contentType).toBe("multipart/form-data; boundary=cs-b");
    expect(body.digest).toBe(createHash("sha256").update(expected).digest("hex"));
  });

  it("of JSON is the stored text, of nothing is empty", () => {
    const json: PreparedRequest = { method: "POST", path: "/x", body: { kind: "json", text: '{ "b":1.0,"a":"é" }' } };
    expect(Buffer.from(assembleBody(json, new Map()).bytes).toString()).toBe('{ "b":1.0,"a":"é" }');
    const none: PreparedRequest = { method: "POST", path: "/x", body: { kind: "none" } };
    expect(assembleBody(none, new Map())).toMatchObject({ bytes: new Uint8Array(0) });
  });

  it("refuses a missing document, another document, and content that contains the boundary", () => {
    expect(faultOf(() => bodyDigest(request([documentPart()]), new Map()))).toBe("document-missing");
    const other = new Map([[documentDigest, Buffer.from("%PDF-1.7 another")]]);
    expect(faultOf(() => bodyDigest(request([documentPart()]), other))).toBe("document-mismatch");
    expect(faultOf(() => bodyDigest(request([documentPart()], "contract"), documents))).toBe("boundary-in-content");
  });

  it("names each document once", () => {
    expect(documentsOf(request([documentPart(), documentPart("b.pdf")]))).toEqual([documentDigest]);
  });

  it("is read back by another parser as it was meant, whatever names and values say", async () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom('"', "\\", "\r", "\n", ";", "é", "契", " "),
        fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      ),
    });
    await fc.assert(
      fc.asyncProperty(
        text.filter((name) => name !== ""),
        text,
        async (fileName, value) => {
          const parts: RequestPart[] = [
            documentPart(fileName.toWellFormed()),
            { kind: "field", name: "note", value: value.toWellFormed() },
          ];
          const body = assembleBody(request(parts, boundaryFor("acme", "op-1")), documents);
          const headers = { "content-type": body.contentType ?? "" };
          const form = await new Response(Buffer.from(body.bytes), { headers }).formData();
          expect([...form.keys()]).toEqual(["file", "note"]);
          expect(form.get("note")).toBe(value.toWellFormed());
          const file = form.get("file");
          expect(file instanceof File && Buffer.from(await file.arrayBuffer()).equals(documentBytes)).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("no name opens a second header line or a second part", () => {
    const evil = 'a"\r\nContent-Type: text/html\r\n\r\n<b>\r\n--cs-b\\';
    const body = assembleBody(request([documentPart(evil)]), documents);
    const head = Buffer.from(body.bytes).toString().split("\r\n\r\n")[0];
    expect(head?.split("\r\n")).toEqual([
      "--cs-b",
      'Content-Disposition: form-data; name="file"; filename="a%22%0D%0AContent-Type: text/html%0D%0A%0D%0A<b>%0D%0A--cs-b%5C"',
      "Content-Type: application/pdf",
    ]);
  });
});
