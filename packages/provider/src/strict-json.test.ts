import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseStrictObject } from "./strict-json.js";

describe("only what every reader understands alike is an object", () => {
  it.each([
    ["a byte-order mark", '\ufeff{"a":1}'],
    ["a name twice", '{"a":1,"a":2}'],
    ["a name twice, once escaped", '{"a":1,"\\u0061":1}'],
    ["a name twice, deep down", '{"x":[{"a":{"b":1,"c":[],"b":2}}]}'],
    ["an unpaired surrogate", '{"a":"\\ud800"}'],
    ["an unpaired surrogate in a name", '{"\\udc00":1}'],
    ["an array", "[]"],
    ["a string", '"a"'],
    ["null", "null"],
    ["nothing", ""],
    ["a cut text", '{"a":'],
    ["more than one text", "{}{}"],
    ["too deep", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`],
  ])("%s is refused", (_, text) => {
    expect(parseStrictObject(Buffer.from(text))).toBeUndefined();
  });

  it("bytes that are not UTF-8 are refused", () => {
    expect(parseStrictObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBeUndefined();
  });

  it("the same name in two objects, and structure inside strings, are fine", () => {
    const text = '{"a":{"a":[{"a":1},{"a":2}]},"b":"{\\"a\\":1,\\"a\\":2}","c":["d","d"]}';
    expect(parseStrictObject(Buffer.from(text))).toEqual(JSON.parse(text));
  });

  it("whatever JSON.stringify writes of an object comes back the same", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (value) => {
        const text = JSON.stringify(value);
        expect(parseStrictObject(Buffer.from(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("no bytes make it throw", () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void parseStrictObject(bytes)));
  });
});
