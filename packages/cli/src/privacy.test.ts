import { createTenant, migrate } from "@countersign/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
beforeAll(async () => {
  cli = await startTestCli();
  await migrate(cli.url);
  await createTenant(cli.ledger, { tenantId: "acme", ticketOwners: { default: "team" } });
});
afterAll(async () => {
  await cli.stop();
});

const who = ["--tenant", "acme", "--who", "u-1"];

it("a legal hold is placed, listed and released; its reason names nobody", async () => {
  const named = await cli.run(["legal-hold", "place", ...who, "--why", "asked by anna@example.com"]);
  expect([named.code, named.err]).toEqual([1, expect.stringContaining("why holds an address")]);
  expect(named.err).not.toContain("anna");
  const unknown = ["--operation", "01980000-0000-7000-8000-000000000000"];
  expect((await cli.run(["legal-hold", "place", ...who, ...unknown, "--why", "case"])).code).toBe(1);
  const placed = await cli.run(["legal-hold", "place", ...who, "--why", "case 4711", "--json"]);
  const id = String(placed.json().legalHoldId);
  expect((await cli.run(["legal-hold", "list", "--tenant", "acme"])).out).toContain("everything");
  const release = ["legal-hold", "release", id, ...who, "--why", "settled"];
  expect((await cli.run(release)).out).toBe("Released.");
  expect((await cli.run(release)).err).toContain("released already");
});

it("retention counts by tenant, in a dry run and for real, and takes days by option or setting", async () => {
  for (const more of [["--dry-run"], [], ["--payload-days", "30"]]) {
    const done = await cli.run(["retention", "run", "--tenant", "acme", "--json", ...more]);
    expect([done.code, done.json()]).toMatchObject([
      0,
      { tenants: [{ tenantId: "acme", erased: { payloads: 0, documents: 0, bodies: 0 }, stayed: {} }] },
    ]);
  }
  expect((await cli.run(["retention", "run", "--payload-days", "0"])).code).toBe(2);
  expect((await cli.run(["retention", "run", "--tenant", "nobody"])).code).toBe(1);
});
