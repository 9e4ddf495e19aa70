import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_EVENTS, splitEvents, TooManyEventsError } from "./batch.js";

const split = (text: string): string[] | undefined =>
  splitEvents(Buffer.from(text))?.map((bytes) => Buffer.from(bytes).toString());

describe("a delivery of several events", () => {
  it.each([
    ['[{"a":1},{"b":2}]', ['{"a":1}', '{"b":2}']],
    ['\n [ {"a" : "],[{\\"" } ,\t[1,[2]] , "x,\\\\", 1e2 ]\r\n', ['{"a" : "],[{\\"" }', "[1,[2]]", '"x,\\\\"', "1e2"]],
    ["[null]", ["null"]],
    ["[]", []],
    [" [ ] ", []],
  ])("%j is split into the exact bytes of each", (text, expected) => {
    expect(split(text)).toEqual(expected);
  });

  it.each(["{}", "", " ", "x", "1", '"["', "[1", "[1,]", "[1]]", '\ufeff[{"a":1}]', '[{"a":1,"a":2}]'])(
    "%j is not one",
    (text) => {
      expect(split(text)).toBeUndefined();
    },
  );

  it("bytes that are not UTF-8 are not one", () => {
    expect(splitEvents(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]))).toBeUndefined();
  });

  it("a thousand events are taken, one more is refused as a whole", () => {
    const of = (count: number): string => `[${Array.from({ length: count }, () => "{}").join(",")}]`;
    expect(split(of(MAX_EVENTS))).toHaveLength(1_000);
    expect(() => split(of(MAX_EVENTS + 1))).toThrow(TooManyEventsError);
  });

  it("whatever the elements and the spaces between them, each comes back as it was", () => {
    const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.json({ noUnicodeString: false })), space, (texts, gap) => {
        fc.pre(texts.every((text) => splitEvents(Buffer.from(`[${text}]`)) !== undefined));
        expect(split(`${gap}[${gap}${texts.join(`${gap},${gap}`)}${gap}]${gap}`)).toEqual(texts);
      }),
    );
  });

  it("no bytes make it throw", () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void splitEvents(bytes)));
    fc.assert(fc.property(fc.string(), (text) => void splitEvents(Buffer.from(`[${text}]`))));
  });
});
