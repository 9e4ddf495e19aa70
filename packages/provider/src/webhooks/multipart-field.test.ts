import { Busboy } from "@fastify/busboy";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { multipartField } from "./multipart-field.js";

const read = (text: string, name = "json"): string | undefined => {
  const bytes = multipartField(Buffer.from(text, "latin1"), name);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString("latin1");
};
const part = (head: string, content: string): string => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const field = (name: string, content: string): string =>
  part(`Content-Disposition: form-data; name="${name}"`, content);

/** Every field as an independent parser reads it. */
function fieldsOf(bytes: Uint8Array, contentType: string): Promise<[string, string][]> {
  return new Promise((resolve, reject) => {
    const fields: [string, string][] = [];
    const parser = new Busboy({ headers: { "content-type": contentType } });
    parser.on("field", (name, value) => void fields.push([name, value]));
    parser.on("finish", () => resolve(fields));
    parser.on("error", reject);
    parser.end(bytes);
  });
}

describe("the field of a multipart form", () => {
  it.each([
    ["alone", `${field("json", "{}")}--b--\r\n`, "{}"],
    ["beside others", `${field("a", "1")}${field("json", "{}")}${field("c", "3")}--b--`, "{}"],
    [
      "with other headers, any case",
      `${part("content-type: x\r\nCONTENT-DISPOSITION: FORM-DATA; NAME=json", "{}")}--b--`,
      "{}",
    ],
    ["after an empty line", `\r\n${field("json", "{}")}--b--`, "{}"],
    ["empty", `${field("json", "")}--b--`, ""],
    ["with line breaks in it", `${field("json", "{\r\n}\r\n")}--b--`, "{\r\n}\r\n"],
  ])("is found %s", (_, text, expected) => {
    expect(read(text)).toBe(expected);
  });

  it.each([
    ["is not there", `${field("other", "{}")}--b--`],
    ["comes twice", `${field("json", "1")}${field("json", "2")}--b--`],
    ["is a file", `${part('Content-Disposition: form-data; name="json"; filename="x"', "{}")}--b--`],
    ["is only named inside a file name", `${part('Content-Disposition: form-data; x="a; name=json"', "{}")}--b--`],
    ["is named twice in one part", `${part('Content-Disposition: form-data; name="a"; name="json"', "{}")}--b--`],
    ["is never ended", field("json", "{}")],
    ["has no empty line after its headers", '--b\r\nContent-Disposition: form-data; name="json"\r\n--b--'],
    ["begins with no boundary", `x${field("json", "{}")}--b--`],
    ["begins with two dashes alone", "--\r\n\r\n\r\n----"],
    ["is plain JSON", "{}"],
    ["is one of thousands of parts", `${field("a", "").repeat(5_000)}${field("json", "{}")}--b--`],
  ])("is not read where it %s", (_, text) => {
    expect(read(text)).toBeUndefined();
  });

  it("is what an independent parser reads", async () => {
    const text = fc.string({ unit: "grapheme" }).filter((value) => value.isWellFormed());
    await fc.assert(
      fc.asyncProperty(text, text, async (value, other) => {
        const form = new FormData();
        form.set("other", other);
        form.set("json", value);
        const response = new Response(form);
        const bytes = new Uint8Array(await response.arrayBuffer());
        const fields = new Map(await fieldsOf(bytes, response.headers.get("content-type") ?? ""));
        for (const name of ["json", "other"]) {
          expect(Buffer.from(multipartField(bytes, name) ?? Buffer.of(1)).toString()).toBe(fields.get(name));
        }
      }),
    );
  });

  it("no bytes make it throw", () => {
    fc.assert(fc.property(fc.string(), (text) => void read(`--b\r\n${text}\r\n--b--`)));
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void multipartField(bytes, "json")));
  });
});
