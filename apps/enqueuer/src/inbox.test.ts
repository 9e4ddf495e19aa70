import { randomUUID } from "node:crypto";
import { createApiKey } from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyMarker, InboxBench, ownType } from "./inbox-bench.js";

let bench: InboxBench;
beforeAll(async () => {
  bench = await InboxBench.start();
});
afterAll(async () => {
  await bench.stop();
});

describe("the inbox is listed", () => {
  it("by status, one or several", async () => {
    const type = ownType("status");
    const received = await bench.stored({ eventType: type });
    const dead = await bench.standing("DEAD", { eventType: type });
    const quarantined = await bench.quarantined({ eventType: type });
    const applied = await bench.standing("APPLIED", { eventType: type });
    expect(await bench.ids({ type })).toEqual([applied, quarantined, dead, received]);
    expect(await bench.ids({ type, status: ["DEAD"] })).toEqual([dead]);
    expect(await bench.ids({ type, status: ["DEAD", "QUARANTINED"] })).toEqual([quarantined, dead]);
    expect(await bench.ids({ type, status: ["DISCARDED"] })).toEqual([]);
  });

  it("by connection and by endpoint", async () => {
    const charlie = bench.review.client("charlie");
    const one = await bench.stored({}, "charlie/one");
    const two = await bench.stored({}, "charlie/two");
    expect(await bench.ids({}, charlie)).toEqual([two, one]);
    expect(await bench.ids({ connection: "one" }, charlie)).toEqual([one]);
    expect(await bench.ids({ endpoint: bench.endpoint("charlie/two") }, charlie)).toEqual([two]);
    expect(await bench.ids({ connection: "one", endpoint: bench.endpoint("charlie/two") }, charlie)).toEqual([]);
  });

  it("by type, reason and reference", async () => {
    const type = ownType("reason");
    const ref = `sr_${newId()}`;
    const unknown = await bench.quarantined({ eventType: type });
    const shape = await bench.quarantined({ eventType: type, quarantine: "shape", providerRef: ref });
    expect(await bench.ids({ type, reason: "unknown-type" })).toEqual([unknown]);
    expect(await bench.ids({ type, reason: "shape" })).toEqual([shape]);
    expect(await bench.ids({ reference: ref })).toEqual([shape]);
    expect(await bench.ids({ type: `${type}x` })).toEqual([]);
    // What a filter says is compared, never interpreted.
    for (const text of ["%", "' OR true --", "type,other", "日本語"]) {
      expect(await bench.ids({ type: text }), text).toEqual([]);
      expect(await bench.ids({ reference: text }), text).toEqual([]);
    }
  });

  it("by when it was received: from an instant on, and before one, in any offset", async () => {
    const type = ownType("since");
    const ids = [await bench.stored({ eventType: type }), await bench.stored({ eventType: type })];
    const [second, first] = await bench.listed({ type });
    const [from, to] = [first?.receivedAt ?? "", second?.receivedAt ?? ""];
    expect(await bench.ids({ type, since: "2020-01-01T00:00:00Z", until: "2100-01-01T00:00:00+02:00" })).toHaveLength(
      2,
    );
    expect(await bench.ids({ type, until: "2020-01-01T00:00:00Z" })).toEqual([]);
    expect(await bench.ids({ type, since: "2100-01-01T00:00:00.123456-11:00" })).toEqual([]);
    // `since` is inclusive and `until` is not.
    expect(await bench.ids({ type, since: from })).toEqual([...ids].reverse());
    expect(await bench.ids({ type, until: from })).toEqual([]);
    expect(await bench.ids({ type, since: from, until: to })).not.toContain(ids[1]);
  });

  it("page by page, each once, the newest first, while new ones come in", async () => {
    const type = ownType("pages");
    const stored: string[] = [];
    for (let n = 0; n < 57; n += 1) stored.push(await bench.stored({ eventType: type }));
    const paged: string[] = [];
    for await (const { inboxId } of bench.reviewer.inbox({ type, limit: 7 })) {
      paged.push(inboxId);
      if (paged.length === 10) await bench.stored({ eventType: type });
    }
    expect(paged).toEqual([...stored].reverse());
    const last = await bench.review.api.call("GET", `/v1/inbox?type=${type}&limit=58`);
    expect(last.body.nextCursor).toBeNull();
  });

  it("to its own tenant only", async () => {
    const type = ownType("tenant");
    const theirs = await bench.quarantined({ eventType: type }, "bravo/main");
    const mine = await bench.quarantined({ eventType: type });
    expect(await bench.ids({ type })).toEqual([mine]);
    expect(await bench.ids({ type }, bench.review.client("bravo"))).toEqual([theirs]);
    expect(await bench.ids({ endpoint: bench.endpoint("bravo/main") })).toEqual([]);
    // Another tenant's id is only a place in the order.
    const after = await bench.review.api.call("GET", `/v1/inbox?type=${type}&cursor=${theirs}`);
    expect(after.body).toEqual({ data: [], nextCursor: null });
  });
});

describe("one event is shown", () => {
  it("with its request, its tickets and what a replay would do now", async () => {
    const { id, ref } = await bench.request("VIEWED");
    const inboxId = await bench.quarantined({ providerRef: ref, operationId: id });
    const detail = await bench.reviewer.inboxEvent(inboxId);
    expect(detail).toMatchObject({
      inboxId,
      connection: "main",
      endpoint: bench.endpoint("acme/main"),
      status: "QUARANTINED",
      reason: "unknown-type",
      reference: ref,
      operationId: id,
      hasBody: true,
      request: { reference: ref, status: "VIEWED", operationId: id },
      replay: { outcome: "applied", reason: null, status: "COMPLETED", evidenceFor: null },
    });
    expect(detail.tickets).toMatchObject([
      { kind: "quarantine", owner: "contracts-team", subjectId: inboxId, resolvedAt: null },
    ]);
  });

  it("also where it names no request, where nobody has heard of it, and where its bytes are gone", async () => {
    const nameless = await bench.reviewer.inboxEvent(await bench.quarantined({ body: Buffer.from(bodyMarker) }));
    expect(nameless).toMatchObject({ request: null, replay: { outcome: "quarantined", reason: "not-json" } });
    const providerRef = `sr_${newId()}`;
    const unheard = await bench.reviewer.inboxEvent(await bench.quarantined({ providerRef }));
    expect(unheard).toMatchObject({
      request: { reference: providerRef, status: null, operationId: null },
      replay: { outcome: "waits", reason: "unbound-reference" },
    });
    const erased = await bench.reviewer.inboxEvent(await bench.erased());
    expect(erased).toMatchObject({ hasBody: false, replay: { outcome: "nothing", reason: "body-erased" } });
    const settled = await bench.reviewer.inboxEvent(await bench.standing("APPLIED"));
    expect(settled.replay).toMatchObject({ outcome: "nothing", reason: "event-is-settled" });
  });

  it("the same under its id in capitals", async () => {
    const inboxId = await bench.quarantined();
    const shouted = await bench.reviewer.inboxEvent(inboxId.toUpperCase());
    expect(shouted).toEqual(await bench.reviewer.inboxEvent(inboxId));
    expect(shouted.tickets).toHaveLength(1);
  });

  it("not to another tenant: as if there were none", async () => {
    const theirs = await bench.quarantined({}, "bravo/main");
    const known = await bench.review.api.call("GET", `/v1/inbox/${theirs}`);
    const unknown = await bench.review.api.call("GET", `/v1/inbox/${newId()}`);
    expect(known.status).toBe(404);
    expect(known.body).toEqual(unknown.body);
  });
});

it.each([
  ["status", "status=OPEN"],
  ["status", "status=DEAD&status=open"],
  ["status", "status="],
  ["connection", "connection=No%20Such"],
  ["endpoint", "endpoint=main"],
  ["type", "type="],
  ["type", "type=a&type=b"],
  ["type", "type=a%00b"],
  ["reason", `reason=${"r".repeat(256)}`],
  ["reference", "reference=%00"],
  ["since", "since=yesterday"],
  ["since", "since=2026-02-30T00:00:00Z"],
  ["since", "since=0000-01-01T00:00:00Z"],
  ["since", "since=2026-01-01T00:00:00%2B23:00"],
  ["until", "until=2026-01-01"],
  ["until", "until=2026-01-01T00:00:00"],
  ["cursor", "cursor=17"],
  ["cursor", `cursor=${randomUUID()}'`],
  ["limit", "limit=0"],
  ["limit", "limit=1001"],
  ["limit", "limit=many"],
  ["", "tenant=bravo"],
])("a query whose %s is not valid is refused, naming it: %s", async (field, query) => {
  const { status, body } = await bench.review.api.call("GET", `/v1/inbox?${query}`);
  expect(body).toMatchObject({ status: 422, type: "/problems/invalid" });
  expect(JSON.stringify(body.errors)).toContain(`"field":"querystring.${field}`);
  expect(status).toBe(422);
});

it.each(["17", "nil", "00000000-0000-7000-8000-00000000000z", "..%2Foperations"])(
  "an event has a UUID: %s is none",
  async (id) => {
    const { status, body } = await bench.review.api.call("GET", `/v1/inbox/${id}`);
    expect(status).toBe(422);
    expect(body.errors).toMatchObject([{ field: "params.id" }]);
  },
);

it("what an event says is in no answer, no problem and no log line, whatever is asked about it", async () => {
  const type = ownType("marker");
  const { ref } = await bench.request();
  const [inboxId = "", ...rest] = [
    await bench.quarantined({ eventType: type, providerRef: ref }),
    await bench.quarantined({ eventType: type, body: Buffer.from(`not JSON ${bodyMarker}`) }),
    await bench.standing("DEAD", { eventType: type }),
    await bench.stored({ eventType: type }),
  ];
  const { call, logLines } = {
    call: (method: string, path: string, body?: object) =>
      bench.review.api.call(method, path, {
        key: bench.review.api.keys.reviewer ?? "",
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    logLines: bench.review.api.logLines,
  };
  const who = { who: "u-17" };
  const answers = [
    await call("GET", `/v1/inbox?type=${type}`),
    await call("GET", "/v1/tickets?limit=1000"),
    await call("POST", "/v1/inbox/replay", { ...who, type, dryRun: true }),
    await call("POST", "/v1/inbox/replay", { ...who, type }),
    await call("POST", `/v1/inbox/${inboxId}/discard`, { ...who, why: "a test" }),
    await call("POST", `/v1/inbox/${await bench.erased()}/replay`, who),
  ];
  for (const id of [inboxId, ...rest]) {
    answers.push(await call("GET", `/v1/inbox/${id}`), await call("POST", `/v1/inbox/${id}/replay`, who));
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 409, 409, ...Array(8).fill(200)]);
  expect(JSON.stringify(answers.map(({ body }) => body))).not.toContain(bodyMarker);
  const lines = logLines.join("\n");
  expect(lines).toContain("/v1/inbox/:id");
  expect(lines).not.toContain(bodyMarker);
  // Nor what it speaks of: a reference is the provider's name for somebody's contract.
  expect(lines).not.toContain(ref);
});

describe("who may see and change it", () => {
  it("a reader's key reads and changes nothing", async () => {
    const inboxId = await bench.quarantined();
    const reader = bench.review.client("reader");
    expect((await bench.ids({ limit: 1_000 }, reader)).length).toBeGreaterThan(0);
    expect(await reader.inboxEvent(inboxId)).toMatchObject({ inboxId });
    const before = await bench.tables();
    for (const attempt of [
      () => reader.replayEvent(inboxId, "u-1"),
      () => reader.replayEvents({ ids: [inboxId], who: "u-1" }),
      () => reader.replayEvents({ all: true, who: "u-1", dryRun: true }),
      () => reader.discardEvent(inboxId, { who: "u-1", why: "x" }),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ status: 403, problem: { type: "/problems/forbidden" } });
    }
    expect(await bench.tables()).toEqual(before);
  });

  it("a key that may not read sees nothing, and no key at all is 401", async () => {
    const inboxId = await bench.quarantined();
    const { api } = bench.review;
    const { key } = await createApiKey(api.ledger, "acme", "blind", ["tenant:admin"]);
    for (const path of ["/v1/inbox", `/v1/inbox/${inboxId}`]) {
      expect((await api.call("GET", path, { key })).status).toBe(403);
      expect((await api.call("GET", path, { key: null })).status).toBe(401);
    }
  });
});
