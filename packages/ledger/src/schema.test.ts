import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { guardsSql } from "./guards-sql.js";
import {
  createTenant,
  DecryptionError,
  defaultThresholds,
  Keyring,
  Ledger,
  migrate,
  migrationState,
  ticketKinds,
} from "./index.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ durable: false });
});
afterAll(async () => {
  await server.stop();
});

it("the guards in the migration are those that edges, relations and frozen columns give", async () => {
  const file = await readFile(new URL("../migrations/0007_guards.sql", import.meta.url), "utf8");
  expect(file.trimEnd()).toBe(guardsSql());
});

it("five migrators at once on an empty database: each migration is applied once", async () => {
  const { url } = await createTestDatabase(server.url);
  await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
  expect((await migrationState(url)).applied).toBe(8);
});

it("a migrator that dies half-way leaves no lock and no half schema", async () => {
  const { url } = await createTestDatabase(server.url);
  const running = migrate(url).catch(() => "killed");
  const admin = postgres(url, { max: 1, onnotice: () => undefined });
  await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`;
  await running;
  await migrate(url);
  expect((await migrationState(url)).applied).toBe(8);
  await admin.end();
});

it("migrates for a role of any name, ours included", async () => {
  const admin = postgres(server.url, { max: 1, onnotice: () => undefined });
  await admin`CREATE ROLE countersign LOGIN SUPERUSER PASSWORD 'test'`;
  const { url } = await createTestDatabase(server.url);
  const asRole = new URL(url);
  asRole.username = "countersign";
  asRole.password = "test";
  await migrate(asRole.href);
  const ledger = new Ledger({ databaseUrl: asRole.href, encryptionKey: randomBytes(32) });
  await createTenant(ledger, { tenantId: "acme", ticketOwners: { default: "team" } });
  await ledger.close();
  await admin.end();
});

it("bytes come back as bytes", async () => {
  const { url } = await createTestDatabase(server.url);
  for (const prepare of [true, false]) {
    const ledger = new Ledger({ databaseUrl: url, encryptionKey: randomBytes(32), prepare });
    const bytes = Buffer.from("00015c80ff".padEnd(64, "0"), "hex");
    const [row] = await ledger.sql<
      { bytes: Buffer; same: boolean }[]
    >`SELECT ${bytes}::bytea AS bytes, decode(${bytes.toString("hex")}, 'hex') = ${bytes}::bytea AS same`;
    expect(row?.same).toBe(true);
    expect(Buffer.isBuffer(row?.bytes) && row.bytes.equals(bytes)).toBe(true);
    await ledger.close();
  }
});

it("a tenant without an owner for every ticket kind is refused, by us and by the database", async () => {
  const { url } = await createTestDatabase(server.url);
  await migrate(url);
  const ledger = new Ledger({ databaseUrl: url, encryptionKey: randomBytes(32) });
  await expect(
    createTenant(ledger, { tenantId: "acme", ticketOwners: { "needs-review": "legal" } }),
  ).rejects.toMatchObject({
    code: "ticket-owner-missing",
  });
  const insert = (owners: object, thresholds: object) => ledger.sql`
    INSERT INTO tenant (tenant_id, ticket_owners, thresholds, data_key, key_id)
    VALUES ('acme', ${ledger.sql.json({ ...owners })}, ${ledger.sql.json({ ...thresholds })}, 'x', 'x')`;
  await expect(insert({}, defaultThresholds)).rejects.toMatchObject({
    constraint_name: "tenant_owns_every_ticket_kind",
  });
  const owners = Object.fromEntries(ticketKinds.map((kind) => [kind, "team"]));
  await expect(insert(owners, { aged: 1 })).rejects.toMatchObject({ constraint_name: "tenant_has_every_threshold" });
  await ledger.close();
});

it("another encryption key is a clear refusal, and a ciphertext opens in its own row only", async () => {
  const { url } = await createTestDatabase(server.url);
  await migrate(url);
  const first = new Ledger({ databaseUrl: url, encryptionKey: randomBytes(32) });
  await createTenant(first, { tenantId: "acme", ticketOwners: { default: "team" } });
  const key = await first.tenantKey("acme");
  const sealed = key.seal(Buffer.from("secret"), "acme/document/1");
  expect(key.open(sealed, "acme/document/1").toString()).toBe("secret");
  expect(() => key.open(sealed, "acme/document/2")).toThrow(DecryptionError);
  sealed[sealed.length - 1] = (sealed[sealed.length - 1] ?? 0) ^ 1;
  expect(() => key.open(sealed, "acme/document/1")).toThrow(DecryptionError);
  const second = new Ledger({ databaseUrl: url, encryptionKey: randomBytes(32) });
  await expect(second.tenantKey("acme")).rejects.toThrow(/COUNTERSIGN_ENCRYPTION_KEY/);
  expect(() => new Keyring("too short")).toThrow(DecryptionError);
  await first.close();
  await second.close();
});

it("a database of each former schema is brought up to date, and what its tenants had named stays", async () => {
  const formerKinds = ticketKinds.filter((kind) => kind !== "endpoint-silent");
  const owners = Object.fromEntries(formerKinds.map((kind) => [kind, kind === "quarantine" ? "desk" : "team"]));
  const former = [
    "0000_ledger",
    "0001_guards",
    "0002_evidence",
    "0003_guards",
    "0004_webhooks",
    "0005_guards",
    "0006_console",
    "0007_guards",
  ];
  const thresholdsOf = { 2: { aged: 7 }, 4: { ...defaultThresholds, aged: 7 } };
  for (const [count, thresholds] of Object.entries(thresholdsOf)) {
    const { url } = await createTestDatabase(server.url);
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    const apply = async (files: readonly string[]): Promise<void> => {
      for (const file of files) {
        const text = await readFile(new URL(`../migrations/${file}.sql`, import.meta.url), "utf8");
        for (const statement of text.split("--> statement-breakpoint")) await sql.unsafe(statement);
      }
    };
    await apply(former.slice(0, Number(count)));
    await sql`
      INSERT INTO tenant (tenant_id, ticket_owners, thresholds, data_key, key_id)
      VALUES ('acme', ${sql.json(owners)}, ${sql.json(thresholds)}, 'x', 'x')`;
    await apply(former.slice(Number(count)));
    const [tenant] = await sql<{ thresholds: object; owners: object }[]>`
      SELECT thresholds, ticket_owners AS owners FROM tenant`;
    expect(tenant?.thresholds).toEqual({ ...defaultThresholds, aged: 7 });
    // Silent endpoints are owned by whoever looks at what can't be interpreted.
    expect(tenant?.owners).toEqual({ ...owners, "endpoint-silent": "desk" });
    await sql.end();
  }
});
