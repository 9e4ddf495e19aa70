import { authenticate, listTickets, openTicket } from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
beforeAll(async () => {
  cli = await startTestCli();
  await cli.run(["migrate"]);
});
afterAll(() => cli.stop());

describe("tenants", () => {
  it("are listed", async () => {
    expect((await cli.run(["tenants", "list"])).out).toBe("no tenants");
    for (const id of ["acme", "bravo"]) await cli.run(["tenant", "create", "--id", id, "--owner", "contracts"]);
    const listed = await cli.run(["tenants", "list", "--json"]);
    expect(JSON.parse(listed.out)).toMatchObject([{ tenantId: "acme", connections: 0 }, { tenantId: "bravo" }]);
  });

  it("change owners by kind; open tickets change hands, other kinds and other tenants keep theirs", async () => {
    for (const tenantId of ["acme", "bravo"]) {
      for (const kind of ["dead-letter", "aged"] as const) {
        const ticket = { tenantId, kind, subjectKind: "operation", subjectId: "o-1", reason: "test" } as const;
        await openTicket(cli.ledger.sql, ticket);
      }
    }
    const set = await cli.run(["tenants", "set-owner", "acme", "--owner-for", "dead-letter=platform", "--json"]);
    expect([set.code, set.json()]).toMatchObject([0, { owners: { "dead-letter": "platform" }, handedOver: 1 }]);
    const owners = async (tenant: string) =>
      Object.fromEntries((await listTickets(cli.ledger, tenant)).map(({ kind, owner }) => [kind, owner]));
    expect(await owners("acme")).toEqual({ "dead-letter": "platform", aged: "contracts" });
    expect(await owners("bravo")).toEqual({ "dead-letter": "contracts", aged: "contracts" });
    expect((await cli.run(["tenant", "show", "acme"])).out).toContain("platform");
  });

  it("take an owner for every kind at once, and the one named on top", async () => {
    await cli.run(["tenants", "set-owner", "acme", "--owner", "legal", "--owner-for", "aged=ops"]);
    const shown = (await cli.run(["tenants", "show", "acme", "--json"])).json();
    expect(shown).toMatchObject({ ticketOwners: { "dead-letter": "legal", quarantine: "legal", aged: "ops" } });
  });

  it("change thresholds by name", async () => {
    const line = ["tenants", "set-threshold", "acme", "--threshold", "age-unknown=15", "--json"];
    expect((await cli.run(line)).json()).toEqual({ tenantId: "acme", thresholds: { "age-unknown": 15 } });
    const shown = (await cli.run(["tenants", "show", "acme", "--json"])).json();
    expect(shown).toMatchObject({ thresholds: { "age-unknown": 15, "age-planned": 60 } });
  });

  it("refuse what names nothing, and a tenant that is none", async () => {
    expect((await cli.run(["tenants", "set-owner", "acme"])).code).toBe(2);
    expect((await cli.run(["tenants", "set-owner", "acme", "--owner-for", "nothing=x"])).code).toBe(2);
    expect((await cli.run(["tenants", "set-owner", "nobody", "--owner", "x"])).code).toBe(1);
    expect((await cli.run(["tenants", "set-threshold", "nobody", "--threshold", "aged=5"])).code).toBe(1);
  });
});

describe("API keys", () => {
  it("are listed without the key, and revoked once; another tenant's are not there", async () => {
    const made = (await cli.run(["keys", "create", "--tenant", "acme", "--name", "billing", "--json"])).json();
    const key = String(made.key);
    const id = String(made.keyId);
    const listed = await cli.run(["keys", "list", "--tenant", "acme", "--json"]);
    expect(JSON.parse(listed.out)).toMatchObject([{ keyId: id, name: "billing", revokedAt: null }]);
    expect(listed.out).not.toContain(key);
    expect((await cli.run(["keys", "revoke", id, "--tenant", "bravo"])).code).toBe(1);
    expect(await authenticate(cli.ledger, key)).toBeDefined();
    const line = ["keys", "revoke", id, "--tenant", "acme", "--json"];
    expect((await cli.run(line)).json()).toEqual({ keyId: id, revoked: true });
    expect(await authenticate(cli.ledger, key)).toBeUndefined();
    expect((await cli.run(line)).json()).toEqual({ keyId: id, revoked: false });
  });

  it("given as an argument are refused without being repeated", async () => {
    const wrong = await cli.run(["keys", "revoke", "csk_MARKER", "--tenant", "acme"]);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("never the key itself")]);
    expect(wrong.err).not.toContain("MARKER");
  });
});
