import { describe, expect, it } from "vitest";
import { maxJsonDepth, parseStrictJson, StrictJsonError } from "./strict-json.js";

function refusal(input: string | Uint8Array): { reason: string; path: string } {
  try {
    parseStrictJson(input);
  } catch (error) {
    if (error instanceof StrictJsonError) return { reason: error.reason, path: error.path };
    throw error;
  }
  return { reason: "accepted", path: "" };
}

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

describe("parseStrictJson", () => {
  it.each([
    ["a repeated name", '{"amount":1,"amount":2}', "duplicate-key", "/amount"],
    ["a repeated name with an equal value", '{"a":"x","a":"x"}', "duplicate-key", "/a"],
    ["a repeated name written with an escape", '{"a":1,"\\u0061":1}', "duplicate-key", "/a"],
    ["a repeated name deep inside", '{"list":[{},{"a/b":1,"a/b":1}]}', "duplicate-key", "/list/1/a~1b"],
    ["a repeated __proto__", '{"__proto__":1,"__proto__":1}', "duplicate-key", "/__proto__"],
    ["2^53", "[9007199254740992]", "unsafe-integer", "/0"],
    ["2^53+1", '{"n":9007199254740993}', "unsafe-integer", "/n"],
    ["-2^53-1", "-9007199254740993", "unsafe-integer", ""],
    ["a huge integer with an exponent", "[1e21]", "unsafe-integer", "/0"],
    ["a number beyond a double", '{"n":[1e400]}', "number-out-of-range", "/n/0"],
    ["a number below a double", "1e-400", "number-out-of-range", ""],
    ["an escaped lone surrogate as value", '{"a":"\\ud800"}', "lone-surrogate", "/a"],
    ["an escaped lone surrogate as name", '{"\\udc00":1}', "lone-surrogate", ""],
    ["an escaped lone surrogate as a later name", '[{"a":1,"\\udc00":1}]', "lone-surrogate", "/0"],
    ["a reversed surrogate pair", '["\\udc00\\ud800"]', "lone-surrogate", "/0"],
    ["a raw lone surrogate", '"\ud800"', "lone-surrogate", ""],
    ["nesting beyond the cap", nested(maxJsonDepth + 1), "too-deep", "/0".repeat(maxJsonDepth)],
    ["200,000 levels", nested(200_000), "too-deep", "/0".repeat(maxJsonDepth)],
    ["no value", "", "not-json", ""],
    ["two values", "1 2", "not-json", ""],
    ["a trailing comma", "[1,]", "not-json", ""],
    ["NaN", "NaN", "not-json", ""],
    ["a byte order mark", "\ufeff{}", "not-json", ""],
  ])("refuses %s", (_, text, reason, path) => {
    expect(refusal(text)).toEqual({ reason, path });
  });

  it("refuses bytes that are not UTF-8", () => {
    expect(refusal(Uint8Array.from([0x22, 0xc3, 0x28, 0x22])).reason).toBe("not-utf8");
    expect(refusal(Uint8Array.from([0x22, 0xed, 0xa0, 0x80, 0x22])).reason).toBe("not-utf8");
  });

  it("reads everything else exactly as the native parser does", () => {
    const texts = [
      '{"a":[1,-0,1.0,1e-7,0.1,9007199254740991,-9007199254740991],"b":{"a":null,"c":[]},"":true}',
      '"\\ud83d\\ude00 \u{1f600} \ufffd \\" \\\\ , { ["',
      '{"a,b":"}","[":"]","x":"1e400 9007199254740993"}',
      ' [ "a" , { "k" : "v" } ] ',
      nested(maxJsonDepth),
    ];
    for (const text of texts) {
      expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      expect(parseStrictJson(new TextEncoder().encode(text))).toEqual(JSON.parse(text));
    }
  });

  it("reads strings of many megabytes", () => {
    const value = ["x".repeat(5_000_000), "a\n".repeat(1_000_000), '\\"\\'.repeat(100_000)];
    expect(parseStrictJson(JSON.stringify(value))).toEqual(value);
  });

  it("keeps __proto__ as an ordinary member", () => {
    const value = parseStrictJson('{"__proto__":{"admin":true}}');
    expect(Object.keys(Object(value))).toEqual(["__proto__"]);
    expect(Reflect.get(Object(value), "admin")).toBeUndefined();
  });

  it("never repeats input in its message", () => {
    expect(() => parseStrictJson('{"secret-name":1,"secret-name":1}')).toThrow(/^JSON refused: a member name occurs/);
  });
});
