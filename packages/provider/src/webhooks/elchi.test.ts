import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elchi } from "./elchi.js";

const now = 1_790_000_000_000;
const seconds = now / 1000;
const secret = "whsec_c2VjcmV0LW9mLXRoZS1lbmRwb2ludA";
const secrets = [{ secretId: "s1", secret }];
const body = Buffer.from('{"id":"evt_1"}');

const sign = (timestamp: string | number, bytes: Uint8Array = body, key = secret): string =>
  createHmac("sha256", key).update(`${timestamp}.`).update(bytes).digest("hex");
const header = (timestamp: string | number, ...signatures: string[]) => ({
  "elchi-signature": [`t=${timestamp}`, ...signatures.map((text) => `v1=${text}`)].join(","),
});
const verify = (headers: Record<string, string | string[] | undefined>, bytes: Uint8Array = body, using = secrets) =>
  elchi.verify(bytes, headers, using, now);

describe("the signature covers the bytes as they came", () => {
  it.each([
    ['{"a":"\\u001B"}'],
    ['{"a":1.0,"b":1e2}'],
    ['{ "b" : 1,\t"a" : 2 }'],
    ['{"a":1}\n'],
    ['\ufeff{"a":1}'],
    ["not json"],
    [""],
  ])("%j passes unchanged and fails with one bit flipped", (text) => {
    const bytes = Buffer.from(text);
    const headers = header(seconds, sign(seconds, bytes));
    expect(verify(headers, bytes)).toEqual({ ok: true, secretId: "s1", signedAt: now });
    for (let index = 0; index < bytes.length; index += 1) {
      const flipped = Buffer.from(bytes);
      flipped[index] = (flipped[index] ?? 0) ^ 1;
      expect(verify(headers, flipped)).toEqual({ ok: false, reason: "no-matching-signature" });
    }
  });
});

describe("a wrong or malformed signature is refused, never an exception", () => {
  const good = sign(seconds);
  it.each([
    ["empty", ""],
    ["short", "abc"],
    ["63 digits", good.slice(0, 63)],
    ["65 digits", `${good}0`],
    ["upper case", good.toUpperCase()],
    ["64 accented letters", "é".repeat(64)],
    ["base64", Buffer.from(good, "hex").toString("base64")],
    ["hex with a wrong last digit", `${good.slice(0, 63)}z`],
  ])("%s", (_, signature) => {
    expect(verify(header(seconds, signature))).toEqual({ ok: false, reason: "no-matching-signature" });
  });

  it.each([
    ["no header", {}, "missing-header"],
    ["an undefined header", { "elchi-signature": undefined }, "missing-header"],
    ["an empty header", { "elchi-signature": "" }, "missing-header"],
    ["no timestamp", { "elchi-signature": `v1=${good}` }, "malformed-header"],
    ["no signature", { "elchi-signature": `t=${seconds}` }, "malformed-header"],
    ["only another version", { "elchi-signature": `t=${seconds},v0=${good}` }, "malformed-header"],
    ["two timestamps", { "elchi-signature": `t=${seconds},t=${seconds + 1},v1=${good}` }, "malformed-header"],
    ["an endless header", { "elchi-signature": `t=${seconds},v1=${good},x=${"x".repeat(20_000)}` }, "malformed-header"],
  ])("%s", (_, headers, reason) => {
    expect(verify(headers)).toEqual({ ok: false, reason });
  });

  it("whatever the header says", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.array(fc.string())), (value) => {
        expect(verify({ "elchi-signature": value }).ok).toBe(false);
      }),
    );
  });
});

describe("the timestamp is plain seconds inside the window, each with a correct signature over it", () => {
  it.each([
    ["now", String(seconds), "ok"],
    ["+4 min", String(seconds + 240), "ok"],
    ["-5 min", String(seconds - 300), "ok"],
    ["+5 min", String(seconds + 300), "ok"],
    ["+6 min", String(seconds + 360), "timestamp-out-of-window"],
    ["-6 min", String(seconds - 360), "timestamp-out-of-window"],
    ["milliseconds", String(now), "timestamp-out-of-window"],
    ["empty", "", "malformed-header"],
    ["a word", "abc", "malformed-header"],
    ["digits and letters", `${seconds}abc`, "malformed-header"],
    ["an exponent", "1.79e9", "malformed-header"],
    ["negative", `-${seconds}`, "malformed-header"],
    ["a fraction", `${seconds}.5`, "malformed-header"],
    ["other digits", "١٧٩٠٠٠٠٠٠٠", "malformed-header"],
    ["endless", "9".repeat(400), "malformed-header"],
  ])("%s", (_, timestamp, expected) => {
    const result = verify(header(timestamp, sign(timestamp)));
    expect(result.ok ? "ok" : result.reason).toBe(expected);
  });
});

describe("during a rotation any active secret of the endpoint passes, and only those", () => {
  const other = "whsec_b3RoZXI";
  const both = [...secrets, { secretId: "s2", secret: other }];
  const good = sign(seconds);
  const wrong = "0".repeat(64);

  it("the good signature first, last or alone, beside unknown tags", () => {
    for (const signatures of [[good], [good, wrong], [wrong, wrong, good]]) {
      expect(verify(header(seconds, ...signatures)).ok).toBe(true);
    }
    expect(verify({ "elchi-signature": ` v2=zz , t=${seconds} , v1=${good} ,nonsense` }).ok).toBe(true);
  });

  it("names the secret that matched", () => {
    expect(verify(header(seconds, sign(seconds, body, other)), body, both)).toMatchObject({ secretId: "s2" });
  });

  it("a retired, foreign, empty or shortened secret is refused", () => {
    for (const key of [other, "", secret.slice("whsec_".length)]) {
      expect(verify(header(seconds, sign(seconds, body, key))).ok).toBe(false);
    }
    expect(verify(header(seconds, sign(seconds, body, "")), body, [{ secretId: "s0", secret: "" }]).ok).toBe(false);
    expect(verify(header(seconds, good), body, []).ok).toBe(false);
  });

  it("of a thousand signatures only the first sixteen are tried", () => {
    const many = Array.from({ length: 15 }, () => wrong);
    expect(verify(header(seconds, ...many, good)).ok).toBe(true);
    expect(verify(header(seconds, ...many, wrong, good)).ok).toBe(false);
    expect(verify(header(seconds, ...Array.from({ length: 1_000 }, () => wrong))).ok).toBe(false);
  });

  it("a header in another case, as a list or sent twice is the same header", () => {
    expect(verify({ "Elchi-Signature": `t=${seconds},v1=${good}` }).ok).toBe(true);
    expect(verify({ "elchi-signature": [`t=${seconds},v1=${wrong}`, `t=${seconds},v1=${good}`] }).ok).toBe(true);
    expect(verify({ "elchi-signature": `t=${seconds},v1=${wrong}, t=${seconds},v1=${good}` }).ok).toBe(true);
  });
});
