import { expect, it } from "vitest";
import { sha256Of, wantedOf } from "./search.js";

it("a search comes back from the history, and nothing else does", () => {
  expect(wantedOf({ text: "contract-1042" })).toEqual({ text: "contract-1042" });
  expect(wantedOf({ documentSha256: "ab", more: 1 })).toEqual({ documentSha256: "ab" });
  expect([null, undefined, "text", { text: 1 }, {}].map(wantedOf)).toEqual(Array(5).fill(undefined));
});

it("a document is named as the ledger names it: SHA-256 in lower-case hex, with its leading zeros", async () => {
  expect(await sha256Of(new TextEncoder().encode("abc").buffer)).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});
