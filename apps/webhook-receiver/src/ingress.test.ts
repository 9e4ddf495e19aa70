import { randomBytes, randomUUID } from "node:crypto";
import { connect as dial } from "node:net";
import { openInboxEntry } from "@countersign/ledger";
import { openQueues } from "@countersign/queue";
import { createLogger } from "@countersign/runtime";
import { handOver } from "@countersign/worker";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  clearInbox,
  connect,
  deliver,
  endpointOf,
  eventBody,
  inbox,
  nowSeconds,
  secretA,
  secretB,
  signature,
  startHouse,
  startIngress,
  type TestHouse,
  type TestIngress,
} from "./testing.js";

let house: TestHouse;
let ingress: TestIngress;

beforeAll(async () => {
  house = await startHouse();
  ingress = await startIngress(house);
});
afterAll(async () => {
  await ingress.close();
  await house.stop();
});
beforeEach(() => clearInbox(house));

describe("the bytes that came are verified and stored as they are", () => {
  const event = (rest: string): string =>
    `{"id":"evt_${randomUUID()}","type":"signing_request.viewed","data":{"signing_request_id":"sr_1"${rest}}}`;

  it.each([
    ["an escape", event(',"x":"\\u001B"'), "application/json"],
    ["numbers in odd forms", event(',"a":1.0,"b":1e2'), "application/json; charset=utf-8"],
    ["spaces", ` \t${event("")} \n`, "application/vnd.x+json"],
    ["a newline at the end", `${event("")}\n`, "text/plain"],
    ["a malformed content type", event(""), "nonsense"],
  ])("%s", async (_, body, contentType) => {
    const response = await deliver(ingress, house.acme, body, { headers: { "content-type": contentType } });
    expect(response.status).toBe(200);
    const [row] = await inbox(house);
    expect(row).toMatchObject({ tenant_id: "acme", status: "RECEIVED", due_now: true, weak_id: false });
    const entry = await openInboxEntry(house.ledger, "acme", row?.inbox_id ?? "");
    expect(entry?.body).toEqual(Buffer.from(body));
  });

  it("one flipped byte is 401 and no row", async () => {
    const body = Buffer.from(eventBody());
    const headers = { "elchi-signature": signature(body, secretA, nowSeconds()) };
    body[10] = (body[10] ?? 0) ^ 1;
    expect((await deliver(ingress, house.acme, body, { headers })).status).toBe(401);
    expect(await inbox(house)).toEqual([]);
  });

  it("what does not parse is stored, quarantined, with a ticket of an owner, and acknowledged", async () => {
    const before = await house.ledger.sql`SELECT 1 FROM ticket WHERE kind = 'quarantine'`;
    for (const body of ["\ufeff{}", "[1", "not json", "", '{"type":"signing_request.viewed"}']) {
      expect((await deliver(ingress, house.acme, body)).status).toBe(200);
    }
    expect((await deliver(ingress, house.acme, eventBody({ type: "signing_request.exploded" }))).status).toBe(200);
    const rows = await inbox(house);
    expect(rows.map(({ status, outcome, weak_id }) => ({ status, outcome, weak_id }))).toEqual([
      ...Array.from({ length: 4 }, () => ({ status: "QUARANTINED", outcome: "not-json", weak_id: true })),
      { status: "QUARANTINED", outcome: "shape", weak_id: true },
      { status: "QUARANTINED", outcome: "unknown-type", weak_id: false },
    ]);
    expect(rows[0]?.provider_event_id).toMatch(/^derived:[0-9a-f]{64}$/);
    const after = await house.ledger.sql`SELECT owner FROM ticket WHERE kind = 'quarantine'`;
    expect(after.length - before.length).toBe(6);
    expect(after.at(-1)).toEqual({ owner: "contracts-team" });
  });
});

describe("who may write to the inbox", () => {
  const good = (body: string): string => signature(body, secretA, nowSeconds()).split("v1=")[1] ?? "";
  it.each([
    ["empty", () => ""],
    ["short", () => "abc"],
    ["63 digits", (body: string) => good(body).slice(1)],
    ["65 digits", (body: string) => `${good(body)}0`],
    ["upper case", (body: string) => good(body).toUpperCase()],
    ["broken base64", () => "%%%="],
    ["accented letters", () => "é".repeat(64)],
  ])("a signature that is %s is 401, never 500, and no row", async (_, forge) => {
    const body = eventBody();
    const headers = { "elchi-signature": `t=${nowSeconds()},v1=${forge(body)}` };
    expect((await deliver(ingress, house.acme, body, { headers })).status).toBe(401);
    expect(await inbox(house)).toEqual([]);
  });

  it.each([
    ["", 401],
    ["abc", 401],
    [`${nowSeconds()}abc`, 401],
    ["1e9", 401],
    [String(Date.now()), 401],
    [`-${nowSeconds()}`, 401],
    [String(nowSeconds() + 240), 200],
    [String(nowSeconds() + 400), 401],
    [String(nowSeconds() - 400), 401],
  ])("a correct signature over the timestamp %j is %i", async (timestamp, status) => {
    const body = eventBody();
    const headers = { "elchi-signature": signature(body, secretA, timestamp) };
    expect((await deliver(ingress, house.acme, body, { headers })).status).toBe(status);
    expect(await inbox(house)).toHaveLength(status === 200 ? 1 : 0);
  });

  it("a replay inside the window is a 2xx with still one row", async () => {
    const body = eventBody();
    const headers = { "elchi-signature": signature(body, secretA, nowSeconds()) };
    for (const _ of [1, 2, 3]) expect((await deliver(ingress, house.acme, body, { headers })).status).toBe(200);
    expect(await inbox(house)).toHaveLength(1);
  });

  it("another tenant's secret is 401; a second secret passes until it is retired", async () => {
    const body = eventBody();
    expect((await deliver(ingress, house.acme, body, { secret: secretB })).status).toBe(401);
    const old = await endpointOf(house.ledger, "acme", "main", "whsec_old");
    const next = await endpointOf(house.ledger, "acme", "main", "whsec_new");
    await house.ledger.sql`UPDATE webhook_secret SET endpoint_id = ${old} WHERE endpoint_id = ${next}`;
    for (const secret of ["whsec_old", "whsec_new"]) {
      expect((await deliver(ingress, old, eventBody(), { secret })).status).toBe(200);
    }
    await house.ledger.sql`
      UPDATE webhook_secret SET retired_at = now() WHERE endpoint_id = ${old}
        AND secret_id = (SELECT secret_id FROM webhook_secret WHERE endpoint_id = ${old} ORDER BY created_at LIMIT 1)`;
    expect((await deliver(ingress, old, eventBody(), { secret: "whsec_old" })).status).toBe(401);
    expect((await deliver(ingress, old, eventBody(), { secret: "whsec_new" })).status).toBe(200);
    expect(await inbox(house)).toHaveLength(3);
  });

  it("an unknown endpoint, a disabled one and any other path are the same 404", async () => {
    const disabled = await endpointOf(house.ledger, "acme", "main", secretA);
    await house.ledger.sql`UPDATE webhook_endpoint SET disabled_at = now() WHERE endpoint_id = ${disabled}`;
    const unknown = `we_${randomBytes(24).toString("base64url")}`;
    for (const id of [disabled, unknown, "x", "..%2f..%2fmetrics", "we_"]) {
      const response = await deliver(ingress, id, eventBody());
      expect([id, response.status, await response.text()]).toEqual([id, 404, "not found"]);
    }
    expect(await inbox(house)).toEqual([]);
  });
});

describe("one event is one row, in its tenant and connection", () => {
  it("the same id and body is a duplicate; another body under a known id is stored and flagged", async () => {
    const id = `evt_${randomUUID()}`;
    const body = eventBody({ id, ref: "sr_a" });
    for (const _ of [1, 2]) expect((await deliver(ingress, house.acme, body)).status).toBe(200);
    expect((await deliver(ingress, house.acme, eventBody({ id, ref: "sr_b" }))).status).toBe(200);
    expect((await inbox(house)).map((row) => row.conflicting)).toEqual([false, true]);
  });

  it("twenty at once are one row, all acknowledged", async () => {
    const body = eventBody();
    const answers = await Promise.all(Array.from({ length: 20 }, () => deliver(ingress, house.acme, body)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await inbox(house)).toHaveLength(1);
  });

  it("one id at two tenants and at two connections is three rows; the tenant in a body says nothing", async () => {
    await connect(house.ledger, "acme", "second");
    const second = await endpointOf(house.ledger, "acme", "second", secretA);
    const body = eventBody({ id: "evt_1", metadata: { tenant: "bravo", operation_id: randomUUID() } });
    await deliver(ingress, house.acme, body);
    await deliver(ingress, second, body);
    await deliver(ingress, house.bravo, body, { secret: secretB });
    expect((await inbox(house)).map((row) => `${row.tenant_id}/${row.connection_id}`).sort()).toEqual([
      "acme/main",
      "acme/second",
      "bravo/main",
    ]);
  });

  it("an unsigned id header is never the id: it is compared, and a difference is flagged", async () => {
    const body = eventBody({ id: "evt_signed" });
    await deliver(ingress, house.acme, body, { headers: { "elchi-event-id": "evt_forged" } });
    await deliver(ingress, house.acme, body, { headers: { "elchi-event-id": "evt_signed" } });
    expect(await inbox(house)).toMatchObject([{ provider_event_id: "evt_signed", conflicting: true }]);
    expect(await ingress.metrics()).toMatch(/header_id_differs_total\{process="test"\} [1-9]/);
  });
});

/** Holds the inbox, so that an insert waits; resolves when `count` of them do. */
async function holdInbox(count: number) {
  const holder = await house.ledger.sql.reserve();
  await holder`BEGIN`;
  await holder`LOCK TABLE webhook_inbox IN ACCESS EXCLUSIVE MODE`;
  const waiting = async (): Promise<number[]> => {
    for (;;) {
      // Outside the holder's transaction, in which this view would stand still.
      const rows = await house.ledger.sql<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO webhook_inbox%'`;
      if (rows.length >= count) return rows.map(({ pid }) => pid);
    }
  };
  return {
    waiting,
    release: async () => {
      await holder`ROLLBACK`;
      holder.release();
    },
  };
}

describe("a 2xx is a promise", () => {
  it("a connection that dies at the insert is 503 and nothing; the redelivery is 200 and one row", async () => {
    const held = await holdInbox(1);
    const body = eventBody();
    const answer = deliver(ingress, house.acme, body);
    for (const pid of await held.waiting()) await house.ledger.sql`SELECT pg_terminate_backend(${pid})`;
    const response = await answer;
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    await held.release();
    expect(await inbox(house)).toEqual([]);
    expect(await house.ledger.sql`SELECT 1 FROM webhook_body`).toHaveLength(0);
    expect((await deliver(ingress, house.acme, body)).status).toBe(200);
    expect(await inbox(house)).toHaveLength(1);
    expect(await house.ledger.sql`SELECT 1 FROM webhook_body`).toHaveLength(1);
  });

  it("storing that outlasts the limit is 503; what commits late stands, and the redelivery is its duplicate", async () => {
    const hasty = await startIngress(house, { ackTimeoutMs: 300 });
    const held = await holdInbox(1);
    const body = eventBody();
    expect((await deliver(hasty, house.acme, body)).status).toBe(503);
    await held.waiting();
    await held.release();
    expect((await deliver(hasty, house.acme, body)).status).toBe(200);
    expect(await inbox(house)).toHaveLength(1);
    await hasty.close();
  });

  it("beyond its limit it sheds with 503, also what outlived its answer counts, and then it takes again", async () => {
    const small = await startIngress(house, { ackTimeoutMs: 300, maxInFlight: 1 });
    const held = await holdInbox(1);
    expect((await deliver(small, house.acme, eventBody())).status).toBe(503);
    await held.waiting();
    const shed = await deliver(small, house.acme, eventBody());
    expect([shed.status, shed.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await small.metrics()).toContain('outcome="overloaded"');
    await held.release();
    await expect.poll(async () => (await deliver(small, house.acme, eventBody())).status).toBe(200);
    await small.close();
  });

  it("an inbox out of reach is 503, and readiness says so", async () => {
    expect((await fetch(`${ingress.url}/readyz`)).status).toBe(200);
    await house.ledger.sql`ALTER TABLE webhook_inbox RENAME TO inbox_elsewhere`;
    try {
      expect((await deliver(ingress, house.acme, eventBody())).status).toBe(503);
      const ready = await fetch(`${ingress.url}/readyz`);
      expect([ready.status, await ready.json()]).toMatchObject([503, { checks: { inbox: { reason: "42P01" } } }]);
    } finally {
      await house.ledger.sql`ALTER TABLE inbox_elsewhere RENAME TO webhook_inbox`;
    }
    expect((await fetch(`${ingress.url}/healthz`)).status).toBe(200);
  });

  it("works while Redis is away: the row is due, the lost job is counted", async () => {
    const logger = createLogger({ name: "test", level: "silent" });
    const queues = openQueues({ redisUrl: "redis://127.0.0.1:1", databaseUrl: house.url, logger });
    const lonely = await startIngress(house, { handOff: (jobs) => handOver(queues, [...jobs]) });
    expect((await deliver(lonely, house.acme, eventBody())).status).toBe(200);
    expect(await inbox(house)).toMatchObject([{ status: "RECEIVED", due_now: true }]);
    await expect.poll(() => lonely.metrics()).toMatch(/hand_off_total\{outcome="failed",process="test"\} 1/);
    await lonely.close();
    await queues.close();
  });

  it("hands over exactly one job per stored event, and none for a duplicate or a quarantined one", async () => {
    ingress.handedOff.length = 0;
    const body = eventBody();
    for (const each of [body, body, "not json"]) await deliver(ingress, house.acme, each);
    const [row] = await inbox(house);
    expect(ingress.handedOff).toEqual([
      { queue: "webhook-apply", tenantId: "acme", kind: "inbox", subjectId: row?.inbox_id, eventNo: 0, dispatches: 0 },
    ]);
  });
});

describe("the limits of a request are explicit", () => {
  it("a body above the limit is 413, a content encoding 415, and nothing is stored", async () => {
    expect((await deliver(ingress, house.acme, "x".repeat(70_000))).status).toBe(413);
    for (const encoding of ["gzip", "br", "identity, gzip"]) {
      const headers = { "content-encoding": encoding };
      expect((await deliver(ingress, house.acme, eventBody(), { headers })).status).toBe(415);
    }
    expect(await inbox(house)).toEqual([]);
    const headers = { "content-encoding": "identity" };
    expect((await deliver(ingress, house.acme, eventBody(), { headers })).status).toBe(200);
  });

  it.each([
    ["body", "content-length: 100\r\n\r\nslow"],
    ["head", ""],
  ])("a slow %s is answered 408 or closed", async (_, rest) => {
    const impatient = await startIngress(house, { receiveTimeoutMs: 200 });
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = dial(impatient.port, "127.0.0.1");
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString();
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(text));
      socket.write(`POST /webhooks/${house.acme} HTTP/1.1\r\nhost: x\r\n${rest}`);
    });
    expect(answer === "" || answer.startsWith("HTTP/1.1 408")).toBe(true);
    await impatient.close();
  });
});

it("no address, secret, event id, reference or endpoint id reaches a log line, a metric or an answer", async () => {
  const loud = await startIngress(house);
  const markers = ["marker@example.com", "MARKER-SECRET", "evt_MARKER", "sr_MARKER", house.acme];
  const body = eventBody({ id: "evt_MARKER", ref: "sr_MARKER", metadata: { note: "marker@example.com" } });
  const texts: string[] = [];
  texts.push(await (await deliver(loud, house.acme, body)).text());
  texts.push(await (await deliver(loud, house.acme, body, { secret: "whsec_MARKER-SECRET" })).text());
  texts.push(await (await deliver(loud, house.acme, `${body}x`)).text());
  await house.ledger.sql`ALTER TABLE webhook_inbox RENAME TO inbox_elsewhere`;
  texts.push(await (await deliver(loud, house.acme, body)).text());
  await house.ledger.sql`ALTER TABLE inbox_elsewhere RENAME TO webhook_inbox`;
  expect(loud.lines.length).toBeGreaterThan(1);
  const everything = [...texts, ...loud.lines, await loud.metrics()].join("\n");
  for (const marker of markers) expect(everything).not.toContain(marker);
  await loud.close();
});
