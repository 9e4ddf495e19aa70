import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { createWebhookEndpoint, type GzipRule, retireSecret, rotateSecret } from "@countersign/ledger";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EndpointWatch } from "./endpoint-watch.js";
import {
  applyDue,
  applyParts,
  clearInbox,
  deliver,
  eventBody,
  inbox,
  nowSeconds,
  secretA,
  sentAs,
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

async function endpoint(scheme: string, secret = secretA, gzip?: GzipRule): Promise<string> {
  const made = await createWebhookEndpoint(house.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme,
    secret,
    ...(gzip === undefined ? {} : { gzip }),
  });
  return made.endpointId;
}
const post = (id: string, body: string | Uint8Array, headers: Record<string, string> = {}, to = ingress) =>
  fetch(`${to.url}/webhooks/${id}`, { method: "POST", headers, body });
const hmac = (secret: string | Buffer, text: string | Uint8Array, encoding: "hex" | "base64") =>
  createHmac("sha256", secret).update(text).digest(encoding);
const flags = () =>
  house.ledger.sql<{ hint: boolean; weak: boolean; id: string; status: string; ref: string | null }[]>`
    SELECT hint, weak_id AS weak, provider_event_id AS id, status, provider_ref AS ref FROM webhook_inbox ORDER BY inbox_id`;

describe("each endpoint has its own scheme, and what it doesn't prove is only a hint", () => {
  it("Standard Webhooks: the signed header id is the event's", async () => {
    const key = randomBytes(32);
    const id = await endpoint("standard-webhooks", `whsec_${key.toString("base64")}`);
    const body = eventBody({ id: "evt_in_the_body" });
    const [messageId, at] = [`msg_${randomUUID()}`, nowSeconds()];
    const headers = {
      "webhook-id": messageId,
      "webhook-timestamp": String(at),
      "webhook-signature": `v1,${hmac(key, `${messageId}.${at}.${body}`, "base64")}`,
    };
    expect((await post(id, body, headers)).status).toBe(200);
    expect((await post(id, body, { ...headers, "webhook-id": `msg_${randomUUID()}` })).status).toBe(401);
    expect(await flags()).toMatchObject([{ hint: false, weak: false, id: messageId, status: "RECEIVED" }]);
    // Applied without its headers, it is still itself.
    expect(await applyDue(house, applyParts(house))).toEqual(["waiting"]);
  });

  it("DocuSign: the body is proven, its derived id is not", async () => {
    const id = await endpoint("docusign", "connect-key");
    const body = JSON.stringify({
      event: "envelope-completed",
      generatedDateTime: "2026-11-30T00:00:00Z",
      data: { envelopeId: "env-1" },
    });
    expect((await post(id, body, { "x-docusign-signature-2": hmac("connect-key", body, "base64") })).status).toBe(200);
    expect(await flags()).toMatchObject([{ hint: true, weak: true, ref: "env-1", status: "RECEIVED" }]);
  });

  it("Dropbox Sign: a forged body passes its hash, is acknowledged in its words, and is never applied as it stands", async () => {
    const id = await endpoint("dropbox-sign", "api-key");
    const ref = `sr_${randomUUID()}`;
    await sentAs(house, ref);
    const [time, type] = ["1796108037", "signature_request_all_signed"];
    const body = JSON.stringify({
      event: { event_time: time, event_type: type, event_hash: hmac("api-key", `${time}${type}`, "hex") },
      signature_request: { signature_request_id: ref },
    });
    const answer = await post(id, body);
    expect([answer.status, await answer.text()]).toEqual([200, "Hello API Event Received"]);
    expect(await flags()).toMatchObject([{ hint: true, weak: true, ref, status: "RECEIVED" }]);
    expect(await applyDue(house, applyParts(house))).toEqual(["asking"]);
    const [signing] = await house.ledger.sql<{ status: string }[]>`
      SELECT status FROM contract_signing WHERE provider_ref = ${ref}`;
    expect(signing?.status).toBe("SENT");
    const polls = await house.ledger.sql`SELECT 1 FROM work_item WHERE kind = 'poll' AND subject_id LIKE 'hint/%'`;
    expect(polls).toHaveLength(1);
  });

  it("Documenso: whoever knows the secret may say anything, so metadata of ours is no evidence", async () => {
    const id = await endpoint("documenso", "shared");
    const body = JSON.stringify({
      event: "DOCUMENT_COMPLETED",
      createdAt: "2026-11-30T00:00:00Z",
      payload: { id: 7, envelopeId: "envelope_1", updatedAt: "2026-11-30T00:00:00Z" },
    });
    expect((await post(id, body, { "x-documenso-secret": "shared" })).status).toBe(200);
    expect((await post(id, body, { "x-documenso-secret": "" })).status).toBe(401);
    expect(await flags()).toMatchObject([{ hint: true, status: "RECEIVED" }]);
  });

  it("an event without an id of its own is stored under a derived one, and only hints", async () => {
    const ref = `sr_${randomUUID()}`;
    const body = JSON.stringify({
      type: "signing_request.completed",
      created_at: "2026-11-30T00:00:00Z",
      data: { signing_request_id: ref, status: "completed" },
    });
    expect((await deliver(ingress, house.acme, body)).status).toBe(200);
    const [row] = await flags();
    expect(row).toMatchObject({ hint: true, weak: true, ref, status: "RECEIVED" });
    expect(row?.id).toMatch(/^derived:[0-9a-f]{64}$/);
    // Written anew with the same content it is the same event.
    expect((await deliver(ingress, house.acme, ` ${body}`)).status).toBe(200);
    expect(new Set((await flags()).map((each) => each.id)).size).toBe(1);
  });
});

describe("an array is a delivery of several events", () => {
  it("each is stored on its own in one commit, and a part of it that comes again is a duplicate", async () => {
    const [a, b] = [eventBody(), eventBody()];
    expect((await deliver(ingress, house.acme, `[${a}, ${b},\n"nonsense"]`)).status).toBe(200);
    expect((await deliver(ingress, house.acme, a)).status).toBe(200);
    const rows = await inbox(house);
    expect(rows.map((row) => row.status).sort()).toEqual(["QUARANTINED", "RECEIVED", "RECEIVED"]);
    expect(rows.filter((row) => row.conflicting)).toEqual([]);
    expect(ingress.handedOff.slice(-2)).toHaveLength(2);
  });

  it("an id in a signed header names the delivery: each event has its place in it", async () => {
    const key = randomBytes(32);
    const id = await endpoint("standard-webhooks", `whsec_${key.toString("base64")}`);
    const body = `[${eventBody()},${eventBody()}]`;
    const at = nowSeconds();
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(at),
      "webhook-signature": `v1,${hmac(key, `msg_1.${at}.${body}`, "base64")}`,
    };
    expect((await post(id, body, headers)).status).toBe(200);
    expect((await post(id, body, headers)).status).toBe(200);
    expect((await flags()).map((row) => row.id)).toEqual(["msg_1#0", "msg_1#1"]);
    expect(await applyDue(house, applyParts(house))).toEqual(["waiting", "waiting"]);
  });

  it("an empty one holds nothing, more than a thousand is too much", async () => {
    expect((await deliver(ingress, house.acme, "[]")).status).toBe(200);
    expect((await deliver(ingress, house.acme, `[${"1,".repeat(1_000)}1]`)).status).toBe(413);
    expect(await inbox(house)).toEqual([]);
  });
});

describe("gzip only where the endpoint says so", () => {
  const gzipped = (body: string) => ({ packed: gzipSync(body), encoding: { "content-encoding": "gzip" } });
  const signed = (over: string | Uint8Array) => ({ "elchi-signature": signature(over, secretA, nowSeconds()) });

  it("refused with 415 elsewhere, whatever the case of its name; two encodings everywhere", async () => {
    const body = eventBody();
    const { packed } = gzipped(body);
    for (const encoding of ["gzip", "GZip", "x-gzip"]) {
      expect((await post(house.acme, packed, { ...signed(body), "content-encoding": encoding })).status).toBe(415);
    }
    const id = await endpoint("elchi", secretA, "content");
    expect((await post(id, packed, { ...signed(body), "content-encoding": "gzip, gzip" })).status).toBe(415);
    expect((await post(id, packed, { ...signed(body), "content-encoding": "br" })).status).toBe(415);
    expect(await inbox(house)).toEqual([]);
  });

  it("signed over its content, or over the bytes as they came by wire: the one that the endpoint names", async () => {
    for (const rule of ["content", "wire"] as const) {
      await clearInbox(house);
      const id = await endpoint("elchi", secretA, rule);
      const body = eventBody();
      const { packed, encoding } = gzipped(body);
      const [right, wrong] = rule === "content" ? [body, packed] : [packed, body];
      expect((await post(id, packed, { ...encoding, ...signed(wrong) })).status).toBe(401);
      expect((await post(id, packed, { ...encoding, ...signed(right) })).status).toBe(200);
      // Not packed this time: the same event.
      expect((await post(id, body, signed(body))).status).toBe(200);
      expect(await inbox(house)).toHaveLength(1);
    }
  });

  it("a small body that unpacks to more than the limit is 413, one that is no gzip 400, and nothing is stored", async () => {
    const id = await endpoint("elchi", secretA, "content");
    const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(64 * 1024);
    expect((await post(id, bomb, { ...signed(bomb), "content-encoding": "gzip" })).status).toBe(413);
    expect((await post(id, "plain", { ...signed("plain"), "content-encoding": "gzip" })).status).toBe(400);
    const cut = gzipSync(eventBody()).subarray(0, 40);
    expect((await post(id, cut, { ...signed(cut), "content-encoding": "gzip" })).status).toBe(400);
    expect(await inbox(house)).toEqual([]);
  });
});

describe("a secret is rotated without a lost delivery", () => {
  it("both verify during the overlap, which one last did is known, and the old one ends at its time", async () => {
    const id = await endpoint("elchi", "whsec_old");
    const cached = await startIngress(house, { endpointCacheMs: 60_000 });
    const say = async (secret: string) => (await deliver(cached, id, eventBody(), { secret })).status;
    expect(await say("whsec_old")).toBe(200);
    const { secretId } = await rotateSecret(house.ledger, {
      tenantId: "acme",
      endpointId: id,
      secret: "whsec_new",
      overlapMs: 60_000,
    });
    // An ingress that remembers the endpoint looks once more before it refuses, at most once a second.
    await expect.poll(() => say("whsec_new"), { timeout: 5_000 }).toBe(200);
    expect(await say("whsec_old")).toBe(200);
    const seen = await house.ledger.sql<{ seen: boolean }[]>`
      SELECT last_verified_at IS NOT NULL AS seen FROM webhook_secret WHERE secret_id = ${secretId}`;
    expect(seen).toEqual([{ seen: true }]);
    await house.ledger
      .sql`UPDATE webhook_secret SET retired_at = now() WHERE endpoint_id = ${id} AND secret_id <> ${secretId}`;
    expect(await (await startIngressOnce()).say(id, "whsec_old")).toBe(401);
    await cached.close();
  });

  it("the last one is never retired", async () => {
    const id = await endpoint("elchi", "whsec_old");
    const [row] = await house.ledger.sql<
      { id: string }[]
    >`SELECT secret_id AS id FROM webhook_secret WHERE endpoint_id = ${id}`;
    const only = { tenantId: "acme", endpointId: id, secretId: row?.id ?? "" };
    await expect(retireSecret(house.ledger, only)).rejects.toMatchObject({ code: "last-secret" });
    await expect(retireSecret(house.ledger, { ...only, tenantId: "bravo" })).rejects.toMatchObject({
      code: "not-found",
    });
    await rotateSecret(house.ledger, { tenantId: "acme", endpointId: id, secret: "whsec_new" });
    await retireSecret(house.ledger, only);
    expect((await deliver(ingress, id, eventBody(), { secret: "whsec_old" })).status).toBe(401);
    expect((await deliver(ingress, id, eventBody(), { secret: "whsec_new" })).status).toBe(200);
  });

  async function startIngressOnce() {
    return { say: async (id: string, secret: string) => (await deliver(ingress, id, eventBody(), { secret })).status };
  }
});

describe("overload sheds before memory grows", () => {
  it("bytes in hand are bounded, announced or not, and one alone always has a place", async () => {
    const tight = await startIngress(house, { maxBytesInFlight: 1_000, bodyLimit: 64 * 1024 });
    const big = eventBody({ metadata: { filler: "x".repeat(5_000) } });
    expect((await deliver(tight, house.acme, big)).status).toBe(200);
    const held = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from("{")),
    });
    const stop = new AbortController();
    const slow = fetch(`${tight.url}/webhooks/${house.acme}`, {
      method: "POST",
      body: held,
      duplex: "half",
      signal: stop.signal,
    } as RequestInit).catch(() => undefined);
    await expect.poll(async () => (await deliver(tight, house.acme, big)).status).toBe(503);
    stop.abort();
    await slow;
    await expect.poll(async () => (await deliver(tight, house.acme, big)).status).toBe(200);
    await tight.close();
  });

  it("a hundred deliveries at once share commits, and each has its own answer", async () => {
    const [one, other] = [eventBody(), eventBody()];
    const before = await commits();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        deliver(ingress, house.acme, [one, other, eventBody()][index % 3] ?? ""),
      ),
    );
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    expect(await inbox(house)).toHaveLength(2 + 33);
    expect((await commits()) - before).toBeLessThan(300);
  });
  const commits = async () =>
    Number(
      (
        await house.ledger.sql<
          { n: string }[]
        >`SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()`
      )[0]?.n,
    );
});

describe("what a sender must be thinking is noticed without a write", () => {
  const about = {
    endpointId: "we_1",
    tenantId: "acme",
    connectionId: "main",
    provider: "wesign",
    scheme: "elchi",
    gzip: null,
    secrets: [],
  };
  const watching = () => {
    const reported: { reason: string; details?: object }[] = [];
    let now = 0;
    const watch = new EndpointWatch(
      { count: 3, forMs: 1_000 },
      async ({ reason, details }) => void reported.push({ reason, ...(details === undefined ? {} : { details }) }),
      () => now,
    );
    return { reported, watch, pass: (ms: number) => (now += ms) };
  };

  it("deliveries of which none verifies, enough of them for long enough, are reported once", () => {
    const { reported, watch, pass } = watching();
    for (let n = 0; n < 50; n += 1) watch.refused(about, "no-matching-signature");
    expect(reported).toEqual([]);
    pass(1_000);
    watch.refused(about, "timestamp-out-of-window");
    watch.refused(about, "timestamp-out-of-window");
    expect(reported).toEqual([{ reason: "refusing", details: { refused: 51, last: "timestamp-out-of-window" } }]);
  });

  it("a flood between good ones is nothing to report", () => {
    const { reported, watch, pass } = watching();
    for (let n = 0; n < 50; n += 1) {
      watch.refused(about, "no-matching-signature");
      pass(100);
      if (n % 5 === 0) watch.stored(about);
    }
    expect(reported).toEqual([]);
  });

  it("a run of deliveries that could not be stored is reported as soon as one can be", () => {
    const { reported, watch, pass } = watching();
    watch.failed(about);
    watch.stored(about);
    expect(reported).toEqual([]);
    for (let n = 0; n < 3; n += 1) watch.failed(about);
    pass(2_000);
    watch.stored(about);
    watch.stored(about);
    expect(reported).toEqual([{ reason: "ingress-outage", details: { failed: 3, seconds: 2 } }]);
  });
});
