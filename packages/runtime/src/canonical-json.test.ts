import { describe, expect, it } from "vitest";
import { CanonicalJsonError, canonicalJson, sha256 } from "./canonical-json.js";
import { parseStrictJson } from "./strict-json.js";

describe("canonicalJson", () => {
  it("gives one text for one value, whatever the order and spacing", () => {
    expect(canonicalJson(parseStrictJson('{ "b":2, "a" : [1.0, 1e0, -0, 1e-7] }'))).toBe('{"a":[1,1,0,1e-7],"b":2}');
  });

  it("sorts names by UTF-16 code units, beyond the BMP too", () => {
    expect(canonicalJson({ "\u{1f600}": 1, "\ufb33": 2, a: 3 })).toBe('{"a":3,"\u{1f600}":1,"\ufb33":2}');
  });

  it("hashes the same before and after storage, undefined members included", () => {
    const value = { a: undefined, b: {}, c: [[], { d: undefined, e: -0 }], f: "\ufffd\u{1f600}" };
    const stored: unknown = JSON.parse(JSON.stringify(value));
    expect(sha256(canonicalJson(stored))).toEqual(sha256(canonicalJson(value)));
  });

  it("takes __proto__ as an ordinary member", () => {
    expect(canonicalJson(parseStrictJson('{"__proto__":1,"a":2}'))).toBe('{"__proto__":1,"a":2}');
  });

  const circular: Record<string, unknown> = {};
  circular.self = circular;
  it.each([
    ["undefined", undefined],
    ["undefined in an array", [undefined]],
    ["a hole in an array", new Array(1)],
    ["NaN", { n: Number.NaN }],
    ["Infinity", [Number.POSITIVE_INFINITY]],
    ["a bigint", { n: 1n }],
    ["a function", { f: () => 1 }],
    ["a symbol", { s: Symbol("s") }],
    ["a date", { d: new Date(0) }],
    ["a map", new Map()],
    ["bytes", Buffer.from("x")],
    ["a lone surrogate", "\ud800"],
    ["a lone surrogate in a name", { "\udc00": 1 }],
    ["a circle", circular],
  ])("refuses %s", (_, value) => {
    expect(() => canonicalJson(value)).toThrow(CanonicalJsonError);
  });

  it("knows SHA-256", () => {
    expect(sha256("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});
