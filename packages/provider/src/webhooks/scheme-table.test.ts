import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { webhookSchemes } from "./registry.js";
import { derivationList, schemeTable } from "./scheme-table.js";

it("docs/providers/webhook-schemes.md shows this very table and these derivations", async () => {
  const doc = await readFile(new URL("../../../../docs/providers/webhook-schemes.md", import.meta.url), "utf8");
  expect(doc).toContain(schemeTable());
  expect(doc).toContain(derivationList());
});

it.each([...webhookSchemes.values()])("$name says what follows from its data, in one sentence each", (scheme) => {
  for (const sentence of [scheme.authentication, scheme.deduplication]) {
    expect(sentence).toMatch(/^(Strong|Good|Poor|Weak): [^|\n]+[^.]\.$/);
  }
  expect(scheme.authentication.startsWith("Poor")).toBe(!scheme.authenticatesBody);
  expect(scheme.deduplication.startsWith("Weak")).toBe(scheme.eventId === "derived");
  expect(scheme.eventId === "signed-header").toBe(scheme.signedId !== undefined);
  expect(scheme.eventId === "derived").toBe(scheme.format?.derivedFrom !== undefined);
  expect(scheme.covers.includes("time-and-body")).toBe(scheme.toleranceMs !== undefined);
  expect(scheme.headers).toEqual(scheme.headers.map((name) => name.toLowerCase()));
});
