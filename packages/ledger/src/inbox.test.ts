import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  applyEvent,
  createWebhookEndpoint,
  type Delivery,
  discardInbox,
  eraseOldBodies,
  getInboxEvent,
  listInbox,
  readInboxBody,
  recordApplyFailure,
  recordDeliveries,
  recordDelivery,
  replayCandidates,
  replayInbox,
} from "./index.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";

let test: TestLedger;
let endpointId = "";
let secretId = "";
beforeAll(async () => {
  test = await startTestLedger();
  const scope = { tenantId: "acme", connectionId: "main" };
  ({ endpointId, secretId } = await createWebhookEndpoint(test.ledger, {
    ...scope,
    scheme: "elchi",
    secret: "whsec_1",
  }));
});
afterAll(async () => {
  await test.stop();
});

const delivery = (change: Partial<Delivery> = {}): Delivery => ({
  tenantId: "acme",
  connectionId: "main",
  endpointId,
  secretId,
  providerEventId: `evt_${randomUUID()}`,
  eventType: "signing_request.viewed",
  body: randomBytes(24),
  ...change,
});
async function stored(change: Partial<Delivery> = {}): Promise<string> {
  const recorded = await recordDelivery(test.ledger, delivery(change));
  if (recorded.kind !== "stored") throw new Error("expected a new event");
  return recorded.inboxId;
}
const openTickets = async (inboxId: string) =>
  (
    await test.ledger.sql<{ kind: string; owner: string }[]>`
      SELECT kind, owner FROM ticket WHERE subject_kind = 'inbox' AND subject_id = ${inboxId} AND resolved_at IS NULL`
  ).map(({ kind, owner }) => `${kind} ${owner}`);
const who = { who: "u-1", limit: 100 };

describe("many deliveries in one commit", () => {
  it("each has its own answer, in order, duplicates within the batch included", async () => {
    const first = delivery();
    const [a, b, c, d] = await recordDeliveries(test.ledger, [
      first,
      delivery({ quarantine: "not-json" }),
      first,
      { ...first, body: randomBytes(8) },
    ]);
    expect(a).toMatchObject({ kind: "stored", quarantined: false });
    expect(b).toMatchObject({ kind: "stored", quarantined: true });
    expect(c).toEqual({ kind: "duplicate" });
    expect(d).toMatchObject({ kind: "stored", conflicting: true });
    expect(await recordDelivery(test.ledger, first)).toEqual({ kind: "duplicate" });
  });

  it("all or none", async () => {
    const good = delivery();
    const bad = delivery({ operationId: "no-uuid" });
    await expect(recordDeliveries(test.ledger, [good, bad])).rejects.toMatchObject({ code: "22P02" });
    expect(await recordDelivery(test.ledger, good)).toMatchObject({ kind: "stored" });
  });

  it("who verified them is noted at most twice a minute, and never waited for", async () => {
    const seen = async () =>
      (
        await test.ledger.sql<
          { at: string }[]
        >`SELECT last_verified_at AS at FROM webhook_secret WHERE secret_id = ${secretId}`
      )[0]?.at;
    const before = await seen();
    expect(before).not.toBeNull();
    await stored();
    expect(await seen()).toBe(before);
    await test.ledger.sql`UPDATE webhook_secret SET last_verified_at = now() - interval '1 minute'`;
    const old = await seen();
    await test.ledger.sql.begin(async (sql) => {
      await sql`SELECT 1 FROM webhook_secret WHERE secret_id = ${secretId} FOR UPDATE`;
      await stored();
    });
    expect(await seen()).toBe(old);
    await stored();
    expect(await seen()).not.toBe(old);
  });
});

describe("a replay", () => {
  it("makes a dead event due again and is safe to press twice; once applied its ticket is closed", async () => {
    const providerRef = `sr_${randomUUID()}`;
    const operationId = await planSend(test);
    await test.ledger.sql`
      INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status)
      VALUES ('acme', 'main', ${providerRef}, ${operationId}, 'SENT')`;
    const inboxId = await stored({ providerRef });
    const row = { tenantId: "acme", inboxId };
    expect(await recordApplyFailure(test.ledger, row, "boom", { maxFailures: 1, backoffMs: 1 })).toBe("DEAD");
    expect(await openTickets(inboxId)).toEqual(["dead-letter contracts-team"]);
    // Its request is asked about, whatever becomes of the event.
    const [signing] = await test.ledger.sql<{ asked: number }[]>`
      SELECT EXTRACT(EPOCH FROM asked_at)::int AS asked FROM contract_signing WHERE provider_ref = ${providerRef}`;
    expect(signing?.asked).toBe(0);
    expect(await replayInbox(test.ledger, "acme", { ids: [inboxId] }, who)).toEqual([inboxId]);
    expect(await replayInbox(test.ledger, "acme", { ids: [inboxId] }, who)).toEqual([]);
    const event = {
      ...row,
      connectionId: "main",
      providerRef,
      status: "VIEWED",
      hint: false,
      eventType: "x",
      eventWaitMs: 1,
      waitPassed: false,
    } as const;
    expect(await applyEvent(test.ledger, event)).toMatchObject({ kind: "applied" });
    expect(await replayInbox(test.ledger, "acme", { ids: [inboxId] }, who)).toEqual([]);
    expect(await openTickets(inboxId)).toEqual([]);
    expect(await getInboxEvent(test.ledger, "acme", inboxId)).toMatchObject({
      status: "APPLIED",
      replays: 1,
      replayedBy: "u-1",
      failures: 0,
    });
  });

  it("takes what the filter says, the oldest first, at most the limit, and nothing of another tenant", async () => {
    const ids = [];
    for (let n = 0; n < 3; n += 1) ids.push(await stored({ quarantine: "unknown-type", eventType: "filter.me" }));
    const filter = { eventType: "filter.me" };
    expect(await replayInbox(test.ledger, "bravo", filter, who)).toEqual([]);
    expect(await replayInbox(test.ledger, "acme", filter, { who: "u-1", limit: 2 })).toEqual(ids.slice(0, 2));
    expect(await replayInbox(test.ledger, "acme", { ...filter, status: ["DEAD"] }, who)).toEqual([]);
    expect(await replayInbox(test.ledger, "acme", filter, who)).toEqual(ids.slice(2));
  });

  it("two at once replay each event once", async () => {
    for (let n = 0; n < 20; n += 1) await stored({ quarantine: "unknown-type", eventType: "at.once" });
    const both = await Promise.all([1, 2].map(() => replayInbox(test.ledger, "acme", { eventType: "at.once" }, who)));
    const all = both.flat();
    expect(new Set(all).size).toBe(all.length);
    const rows = await listInbox(test.ledger, "acme", { eventType: "at.once" });
    expect(rows.every((row) => row.replays <= 1)).toBe(true);
  });

  it("needs somebody who says so", async () => {
    await expect(replayInbox(test.ledger, "acme", {}, { who: " ", limit: 1 })).rejects.toMatchObject({
      code: "reason-missing",
    });
  });
});

describe("a discarded event", () => {
  it("keeps who and why, closes its tickets, and is not discarded twice or out of turn", async () => {
    const inboxId = await stored({ quarantine: "unknown-type" });
    const discard = { tenantId: "acme", inboxId, who: "u-2", why: "a test of the sender" };
    await expect(discardInbox(test.ledger, { ...discard, tenantId: "bravo" })).rejects.toMatchObject({
      code: "not-found",
    });
    await expect(discardInbox(test.ledger, { ...discard, why: "asked by a@b.example" })).rejects.toMatchObject({
      code: "reason-unsuitable",
    });
    await discardInbox(test.ledger, discard);
    expect(await openTickets(inboxId)).toEqual([]);
    expect(await getInboxEvent(test.ledger, "acme", inboxId)).toMatchObject({
      status: "DISCARDED",
      discardedBy: "u-2",
      discardReason: "a test of the sender",
    });
    await expect(discardInbox(test.ledger, discard)).rejects.toMatchObject({ code: "event-is-settled" });
    await expect(discardInbox(test.ledger, { ...discard, inboxId: await stored() })).rejects.toMatchObject({
      code: "event-is-settled",
    });
    await expect(
      test.ledger.sql`UPDATE webhook_inbox SET status = 'DISCARDED', due_at = NULL WHERE inbox_id = ${await stored()}`,
    ).rejects.toMatchObject({ constraint_name: "inbox_discarded_by_somebody" });
  });
});

describe("bodies", () => {
  const age = async (inboxId: string, days: number) => {
    // An event of long ago: ids carry their time.
    const [row] = await test.ledger.sql<{ id: string }[]>`
      WITH moved AS (SELECT (lpad(to_hex((EXTRACT(EPOCH FROM now() - make_interval(days => ${days})) * 1000)::bigint), 12, '0')
        || right(replace(${inboxId}, '-', ''), 20))::uuid AS id)
      INSERT INTO webhook_inbox SELECT tenant_id, moved.id, now() - make_interval(days => ${days}), connection_id, endpoint_id,
        provider_event_id || '-old', body_sha256, status, event_type, provider_ref, operation_id, conflicting, weak_id, due_at, dispatches,
        failures, wait_until, outcome, applied_at FROM webhook_inbox, moved WHERE inbox_id = ${inboxId} RETURNING inbox_id AS id`;
    await test.ledger.sql`
      INSERT INTO webhook_body (tenant_id, inbox_id, received_at, bytes, key_id)
      SELECT 'acme', i.inbox_id, i.received_at, 'x', 'k' FROM webhook_inbox i WHERE i.inbox_id = ${row?.id ?? ""}`;
    return row?.id ?? "";
  };
  const settled = async (status: string) => {
    const id = await stored();
    await test.ledger.sql`UPDATE webhook_inbox SET status = ${status}, due_at = NULL WHERE inbox_id = ${id}`;
    return id;
  };

  it("are erased after their days, never while the event is open, and the row stays", async () => {
    const over = await age(await settled("APPLIED"), 40);
    const young = await age(await settled("APPLIED"), 20);
    const open = [
      await age(await stored(), 40),
      await age(await stored({ quarantine: "unknown-type" }), 40),
      await age(await settled("DEAD"), 40),
    ];
    expect(await eraseOldBodies(test.ledger, 30)).toBe(1);
    expect(await eraseOldBodies(test.ledger, 30)).toBe(0);
    const has = async (id: string) => (await getInboxEvent(test.ledger, "acme", id))?.hasBody;
    expect(await has(over)).toBe(false);
    expect(await has(young)).toBe(true);
    for (const id of open) expect(await has(id)).toBe(true);
    expect(await readInboxBody(test.ledger, "acme", over)).toBeUndefined();
  });

  it("of open events can't be deleted or changed, whoever tries, nor can an inbox row", async () => {
    const id = await stored();
    const refused = { code: "CS003" };
    await expect(test.ledger.sql`DELETE FROM webhook_body WHERE inbox_id = ${id}`).rejects.toMatchObject(refused);
    await expect(test.ledger.sql`UPDATE webhook_body SET bytes = 'y' WHERE inbox_id = ${id}`).rejects.toMatchObject(
      refused,
    );
    await expect(test.ledger.sql`DELETE FROM webhook_inbox WHERE inbox_id = ${id}`).rejects.toMatchObject(refused);
  });

  it("are stored unreadable, and read back as they came", async () => {
    const body = Buffer.from("MARKER-BODY \u0000 \u00ff");
    const id = await stored({ body });
    const [row] = await test.ledger.sql<{ bytes: Buffer }[]>`SELECT bytes FROM webhook_body WHERE inbox_id = ${id}`;
    expect(row?.bytes.includes("MARKER")).toBe(false);
    expect(await readInboxBody(test.ledger, "acme", id)).toEqual(body);
    await expect(readInboxBody(test.ledger, "bravo", id)).rejects.toMatchObject({ code: "not-found" });
    const [candidate] = await replayCandidates(test.ledger, "acme", { ids: [id] }, { limit: 1 });
    expect(candidate).toMatchObject({
      inboxId: id,
      bound: false,
      signingStatus: null,
      provider: "wesign",
      scheme: "elchi",
      body,
    });
  });
});

it("pages of the inbox follow each other without a gap", async () => {
  for (let n = 0; n < 5; n += 1) await stored({ eventType: "page" });
  const first = await listInbox(test.ledger, "acme", { eventType: "page" }, { limit: 3 });
  const second = await listInbox(
    test.ledger,
    "acme",
    { eventType: "page" },
    { limit: 3, cursor: first.at(-1)?.inboxId ?? "" },
  );
  expect([...first, ...second].map((row) => row.inboxId)).toEqual(
    (await listInbox(test.ledger, "acme", { eventType: "page" })).map((row) => row.inboxId),
  );
  expect(second).toHaveLength(2);
});
