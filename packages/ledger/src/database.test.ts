import { afterAll, beforeAll, expect, it } from "vitest";
import { Ledger, sqlState } from "./index.js";
import { startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
beforeAll(async () => {
  test = await startTestLedger();
  await test.ledger.sql`CREATE TABLE trial (name text NOT NULL)`;
});
afterAll(async () => {
  await test.stop();
});

const oneConnection = (): Ledger =>
  new Ledger({ databaseUrl: test.url, encryptionKey: Buffer.alloc(32), maxConnections: 1 });
const names = async () =>
  (await test.ledger.sql<{ name: string }[]>`SELECT name FROM trial ORDER BY name`).map((row) => row.name);

it("a transaction whose backend dies is refused whole, harms no other, and ends no process", async () => {
  const ledger = oneConnection();
  let late: unknown;
  const first = ledger.sql.begin(async (sql) => {
    const [row] = await sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    await sql`INSERT INTO trial VALUES ('first-1')`;
    await test.ledger.sql`SELECT pg_terminate_backend(${row?.pid ?? 0})`;
    await new Promise((resolve) => setTimeout(resolve, 100));
    // By then the connection is open again, in the hands of the second transaction.
    late = await sql`INSERT INTO trial VALUES ('first-2')`.catch((error: unknown) => error);
    throw late;
  });
  const second = ledger.sql.begin(async (sql) => {
    await sql`INSERT INTO trial VALUES ('second')`;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return "committed";
  });
  await expect(first).rejects.toThrow();
  await expect(second).resolves.toBe("committed");
  expect(sqlState(late)).toBe("CONNECTION_CLOSED");
  expect(await names()).toEqual(["second"]);
  await ledger.close();
});

it("a backend killed in the middle of a transaction's statement ends no process, many times over", async () => {
  const ledger = new Ledger({ databaseUrl: test.url, encryptionKey: Buffer.alloc(32), maxConnections: 4 });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 12 }, () =>
      ledger.sql.begin(async (sql) => {
        const [row] = await sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
        const killed = sql`SELECT pg_sleep(10)`.catch((error: unknown) => error);
        await test.ledger.sql`SELECT pg_terminate_backend(${row?.pid ?? 0})`;
        throw await killed;
      }),
    ),
  );
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  // What would end the process is thrown in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 50));
  // One that falls on a connection whose end is still arriving is told so; there are four, so the fifth answers.
  let alive: { one: number } | undefined;
  for (let tries = 0; tries < 5 && alive === undefined; tries += 1) {
    [alive] = await ledger.sql<{ one: number }[]>`SELECT 1 AS one`.catch((error: unknown) => {
      expect(sqlState(error)).toMatch(/^(57P01|CONNECTION_CLOSED)$/);
      return [];
    });
  }
  expect(alive?.one).toBe(1);
  await ledger.close();
});

it("statements that wait while the server is away fail or succeed, and never hang", async () => {
  const ledger = new Ledger({ databaseUrl: test.url, encryptionKey: Buffer.alloc(32), maxConnections: 5 });
  const settled: string[] = [];
  let asked = 0;
  const ask = (): void => {
    asked += 1;
    ledger.sql`SELECT ${asked}::int`.then(
      () => settled.push("answered"),
      () => settled.push("failed"),
    );
  };
  const timer = setInterval(() => Array.from({ length: 5 }, ask), 5);
  await test.server.kill("SIGKILL");
  await test.server.restart();
  await new Promise((resolve) => setTimeout(resolve, 500));
  clearInterval(timer);
  await expect.poll(() => settled.length, { timeout: 5_000 }).toBe(asked);
  expect(settled).toContain("answered");
  await ledger.close();
});
