import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InboxBench, ownType } from "./inbox-bench.js";

let bench: InboxBench;
beforeAll(async () => {
  bench = await InboxBench.start();
});
afterAll(async () => {
  await bench.stop();
});

const who = "u-17";
const job = (subjectId: string) => ({
  queue: "webhook-apply",
  tenantId: "acme",
  kind: "inbox",
  subjectId,
  eventNo: 0,
  dispatches: 0,
});
/** A call with the key that may replay, for what the typed client can't be made to say. */
const post = (path: string, body: object) =>
  bench.review.api.call("POST", path, { key: bench.review.api.keys.reviewer ?? "", body: JSON.stringify(body) });
const unchanged = async (attempt: () => Promise<unknown>): Promise<void> => {
  const before = await bench.tables();
  const jobs = bench.review.api.handedOver.length;
  await attempt();
  expect(await bench.tables()).toEqual(before);
  expect(bench.review.api.handedOver).toHaveLength(jobs);
};

describe("a replay of one event", () => {
  it.each(["QUARANTINED", "DEAD", "CONFLICT"])(
    "makes a %s one due at once and hands its job over; twice is no error",
    async (status) => {
      const inboxId = await bench.standing(status);
      expect(await bench.reviewer.replayEvent(inboxId, who)).toEqual({ inboxId, replayed: true, reason: null });
      expect(bench.jobs([inboxId])).toEqual([job(inboxId)]);
      const after = await bench.reviewer.inboxEvent(inboxId);
      expect(after).toMatchObject({ status: "RECEIVED", replays: 1, replayedBy: who, failures: 0 });
      expect(after.dueAt).not.toBeNull();
      expect(after.replay).toMatchObject({ outcome: "nothing", reason: "already-due" });
      await unchanged(async () => {
        expect(await bench.reviewer.replayEvent(inboxId, "u-18")).toEqual({
          inboxId,
          replayed: false,
          reason: "already-due",
        });
      });
    },
  );

  it.each(["APPLIED", "NO_OP"])("of a %s one says that it is settled", async (status) => {
    const inboxId = await bench.standing(status);
    await unchanged(async () => {
      expect(await bench.reviewer.replayEvent(inboxId, who)).toEqual({
        inboxId,
        replayed: false,
        reason: "event-is-settled",
      });
    });
  });

  it("whose bytes are erased is refused", async () => {
    const inboxId = await bench.erased();
    await unchanged(async () => {
      await expect(bench.reviewer.replayEvent(inboxId, who)).rejects.toMatchObject({
        status: 409,
        problem: { type: "/problems/body-erased" },
      });
    });
  });

  it("of no event, or of another tenant's, is 404", async () => {
    const theirs = await bench.quarantined({}, "bravo/main");
    await unchanged(async () => {
      for (const id of [newId(), theirs]) {
        await expect(bench.reviewer.replayEvent(id, who)).rejects.toMatchObject({
          status: 404,
          problem: { type: "/problems/not-found" },
        });
      }
    });
  });

  it("that somebody else replays at this moment says so", async () => {
    const inboxId = await bench.quarantined();
    await bench.sql.begin(async (sql) => {
      await sql`SELECT 1 FROM webhook_inbox WHERE inbox_id = ${inboxId} FOR UPDATE`;
      expect(await bench.reviewer.replayEvent(inboxId, who)).toEqual({ inboxId, replayed: false, reason: "busy" });
    });
  });

  it.each([
    ["nobody", {}, 422, "who"],
    ["a name", { who: "Anna Smith" }, 422, "who"],
    ["an address", { who: "anna@example.com" }, 422, "who"],
    ["more than asked", { who, force: true }, 422, ""],
  ])("by %s is refused, and the answer does not repeat it", async (_name, body, status, field) => {
    const inboxId = await bench.quarantined();
    await unchanged(async () => {
      const answer = await post(`/v1/inbox/${inboxId}/replay`, body);
      expect(answer.status).toBe(status);
      if (field !== "") expect(answer.body.errors).toMatchObject([{ field }]);
      expect(JSON.stringify(answer.body)).not.toMatch(/anna/i);
    });
  });
});

describe("a replay of many", () => {
  it("takes what the filter says, the oldest first, and hands each job over once", async () => {
    const type = ownType("filter");
    const mine = [await bench.quarantined({ eventType: type }), await bench.standing("DEAD", { eventType: type })];
    const others = [
      await bench.stored({ eventType: type }),
      await bench.standing("APPLIED", { eventType: type }),
      await bench.erased({ eventType: type }),
      await bench.quarantined({ eventType: type }, "bravo/main"),
    ];
    expect(await bench.reviewer.replayEvents({ type, who })).toEqual({
      dryRun: false,
      rows: mine.map((inboxId) => ({ inboxId, outcome: "replayed", reason: null, status: null, evidenceFor: null })),
      counts: { replayed: 2 },
      more: false,
    });
    expect(bench.jobs([...mine, ...others])).toEqual(mine.map(job));
    expect(await bench.reviewer.replayEvents({ type, who })).toMatchObject({ rows: [], counts: {}, more: false });
  });

  it("takes each condition", async () => {
    const ref = `sr_${newId()}`;
    const type = ownType("condition");
    const inboxId = await bench.quarantined({ eventType: type, providerRef: ref, quarantine: "shape" });
    const endpoint = bench.endpoint("acme/main");
    const { receivedAt } = await bench.reviewer.inboxEvent(inboxId);
    const narrow = { type, dryRun: true, who } as const;
    for (const [matching, not] of [
      [{ connection: "main" }, { connection: "other" }],
      [{ endpoint }, { endpoint: "we_other" }],
      [{ reason: "shape" }, { reason: "shapes" }],
      [{ reference: ref }, { reference: "sr_other" }],
      [{ since: receivedAt }, { until: receivedAt }],
      [{ status: ["QUARANTINED" as const] }, { status: ["DEAD" as const] }],
      [{ ids: [inboxId] }, { ids: [newId()] }],
    ] as const) {
      const ids = async (condition: object) =>
        (await bench.reviewer.replayEvents({ ...narrow, ...condition })).rows.map((row) => row.inboxId);
      expect(await ids(matching)).toEqual([inboxId]);
      expect(await ids(not)).toEqual([]);
    }
  });

  it("of named events says of each that is not replayed why; of what is not there, nothing", async () => {
    const settled = await bench.standing("APPLIED");
    const due = await bench.stored();
    const erased = await bench.erased();
    const good = await bench.quarantined();
    const theirs = await bench.quarantined({}, "bravo/main");
    const ids = [good, due, erased, settled, theirs, newId()];
    const { rows, counts, more } = await bench.reviewer.replayEvents({ ids, who });
    expect(rows.map(({ inboxId, outcome, reason }) => [inboxId, outcome, reason])).toEqual([
      [good, "replayed", null],
      [settled, "not-replayed", "event-is-settled"],
      [due, "not-replayed", "already-due"],
      [erased, "not-replayed", "body-erased"],
    ]);
    expect(counts).toEqual({ replayed: 1, "not-replayed": 3 });
    expect(more).toBe(false);
    // Named in capitals or twice, it is one event.
    const again = await bench.quarantined();
    const shouted = await bench.reviewer.replayEvents({ ids: [again.toUpperCase(), again], who });
    expect(shouted.rows).toMatchObject([{ inboxId: again, outcome: "replayed" }]);
  });

  it("goes on to the limit and says whether there are more", async () => {
    const type = ownType("limit");
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await bench.quarantined({ eventType: type }));
    const take = async (dryRun: boolean, limit: number) => {
      const { rows, more } = await bench.reviewer.replayEvents({ type, who, dryRun, limit });
      return [rows.map(({ inboxId }) => inboxId), more];
    };
    expect(await take(true, 2)).toEqual([ids.slice(0, 2), true]);
    expect(await take(true, 5)).toEqual([ids, false]);
    expect(await take(false, 2)).toEqual([ids.slice(0, 2), true]);
    expect(await take(true, 2)).toEqual([ids.slice(2, 4), true]);
    expect(await take(false, 3)).toEqual([ids.slice(2), false]);
    expect(await take(false, 3)).toEqual([[], false]);
    const named = [await bench.quarantined(), await bench.quarantined(), await bench.quarantined()];
    const some = await bench.reviewer.replayEvents({ ids: named, who, limit: 2 });
    expect(some).toMatchObject({ counts: { replayed: 2 }, more: true });
    const rest = await bench.reviewer.replayEvents({ ids: named, who, limit: 2 });
    expect(rest).toMatchObject({ counts: { replayed: 1, "not-replayed": 2 }, more: false });
  });

  it("as a dry run takes up to the limit what would really be replayed, also beside events that are not a person's", async () => {
    const type = ownType("mixed");
    await bench.stored({ eventType: type });
    const inboxId = await bench.quarantined({ eventType: type });
    await bench.standing("APPLIED", { eventType: type });
    for (const dryRun of [true, false]) {
      const status = ["RECEIVED", "QUARANTINED", "APPLIED"] as const;
      const { rows, more } = await bench.reviewer.replayEvents({ type, who, dryRun, limit: 1, status: [...status] });
      expect([rows.map((row) => row.inboxId), more]).toEqual([[inboxId], false]);
    }
    expect(await bench.reviewer.replayEvents({ type, who, dryRun: true, status: ["APPLIED"] })).toMatchObject({
      rows: [],
    });
  });

  it("of more than one page of bodies is told to its end", async () => {
    const type = ownType("pages");
    const ids: string[] = [];
    for (let n = 0; n < 230; n += 1) ids.push(await bench.quarantined({ eventType: type }));
    for (const limit of [99, 100, 101, 200, 229]) {
      const { rows, more } = await bench.reviewer.replayEvents({ type, who, dryRun: true, limit });
      expect(rows.map(({ inboxId }) => inboxId)).toEqual(ids.slice(0, limit));
      expect(more).toBe(true);
    }
    const { rows, more } = await bench.reviewer.replayEvents({ type, who, dryRun: true, limit: 230 });
    expect(rows).toHaveLength(230);
    expect(more).toBe(false);
  });

  it("as a dry run says what each would do and changes nothing; settled ones are only named ones' business", async () => {
    const type = ownType("dry");
    const { id, ref } = await bench.request("SENT");
    const other = await bench.request("DECLINED");
    const event = (change: object) => bench.standing("DEAD", { eventType: type, ...change });
    const said = (word: string, reference: string, metadata = {}) =>
      Buffer.from(
        JSON.stringify({
          id: newId(),
          type: `signing_request.${word}`,
          data: { signing_request_id: reference, metadata },
        }),
      );
    const told: [string, string, string | null, string | null][] = [
      [await event({ providerRef: ref, body: said("viewed", ref) }), "applied", null, "VIEWED"],
      [await event({ providerRef: ref, body: said("sent", ref) }), "nothing", "already-viewed", null],
      [await event({ providerRef: ref, body: said("completed", ref) }), "applied", null, "COMPLETED"],
      [await event({ providerRef: ref, body: said("declined", ref) }), "conflict", "declined-after-completed", null],
      [
        await event({ providerRef: other.ref, body: said("completed", other.ref) }),
        "conflict",
        "completed-after-declined",
        null,
      ],
      [await event({ providerRef: ref, body: said("reminded", ref) }), "nothing", "no-meaning-for-status", null],
      [await event({ providerRef: "sr_x", body: said("sent", "sr_x") }), "waits", "unbound-reference", null],
      [await event({ body: said("blessed", ref) }), "quarantined", "unknown-type", null],
      [await event({ body: Buffer.from("<xml/>") }), "quarantined", "not-json", null],
      [
        await event({ providerRef: ref, hint: true, body: said("viewed", ref) }),
        "asks-provider",
        "stored-as-hint",
        null,
      ],
      [
        await event({
          providerRef: ref,
          operationId: other.id,
          body: said("sent", ref, { operation_id: other.id, tenant: "acme" }),
        }),
        "conflict",
        "reference-of-another-operation",
        null,
      ],
      [await bench.erased({ eventType: type }), "nothing", "body-erased", null],
    ];
    const settled = await bench.standing("APPLIED", { eventType: type });
    await unchanged(async () => {
      const { rows, counts, dryRun } = await bench.reviewer.replayEvents({ type, who, dryRun: true });
      expect(dryRun).toBe(true);
      expect(rows.map(({ inboxId, outcome, reason, status }) => [inboxId, outcome, reason, status])).toEqual(told);
      expect(counts).toEqual({ applied: 2, nothing: 3, conflict: 3, waits: 1, quarantined: 2, "asks-provider": 1 });
      const named = await bench.reviewer.replayEvents({ ids: [settled], who, dryRun: true });
      expect(named.rows).toMatchObject([{ outcome: "nothing", reason: "event-is-settled" }]);
    });
    expect((await bench.review.reviewer.get(id)).signingStatuses).toEqual(["SENT"]);
  });

  it("of everything needs the word `all`, and nothing beside it", async () => {
    const inboxId = await bench.quarantined({}, "acme/main");
    await unchanged(async () => {
      for (const body of [
        { who },
        { who, limit: 3 },
        { who, dryRun: true },
        { who, all: true, type: "x" },
        { who, all: true, ids: [inboxId] },
        { who, all: true, status: ["DEAD"] },
        { who, all: true, since: "2026-01-01T00:00:00Z" },
      ]) {
        const answer = await post("/v1/inbox/replay", body);
        expect(answer.body).toMatchObject({ status: 400, type: "/problems/bad-request", errors: [{ field: "all" }] });
        expect(answer.status).toBe(400);
      }
    });
    const theirs = await bench.quarantined({}, "bravo/main");
    const dry = await bench.reviewer.replayEvents({ all: true, who, dryRun: true, limit: 10_000 });
    expect(dry.rows.map((row) => row.inboxId)).toContain(inboxId);
    const done = await bench.reviewer.replayEvents({ all: true, who, limit: 10_000 });
    expect(done.rows.map((row) => row.inboxId)).toContain(inboxId);
    expect(done.rows.map((row) => row.inboxId)).not.toContain(theirs);
    // Whatever the dry run said would be looked at again was made due, but for what has no bytes.
    const withBytes = dry.rows.filter(({ reason }) => reason !== "body-erased");
    expect(done.rows.map((row) => row.inboxId)).toEqual(withBytes.map((row) => row.inboxId));
    expect(await bench.ids({ status: ["QUARANTINED"] }, bench.review.client("bravo"))).toContain(theirs);
  });

  it.each([
    ["status", { status: "DEAD" }],
    ["status", { status: [] }],
    ["status.0", { status: ["LOST"] }],
    ["ids", { ids: [] }],
    ["ids.1", { ids: [newId(), "17"] }],
    ["all", { all: false }],
    ["who", { type: "x", who: "two words" }],
    ["dryRun", { type: "x", dryRun: "yes" }],
    ["limit", { type: "x", limit: 10_001 }],
    ["limit", { type: "x", limit: 1.5 }],
    ["type", { type: "a\u0000b" }],
    ["reason", { reason: "" }],
    ["reference", { reference: "r".repeat(256) }],
    ["since", { since: "2026-13-01T00:00:00Z" }],
    ["until", { until: 17 }],
    ["connection", { connection: "MAIN" }],
    ["endpoint", { endpoint: "we_" }],
  ])("whose %s is not valid is refused, naming it: %j", async (field, body) => {
    await unchanged(async () => {
      const answer = await post("/v1/inbox/replay", { who, ...body });
      expect(answer.body).toMatchObject({ status: 422, type: "/problems/invalid", errors: [{ field }] });
    });
  });
});

describe("a discarded event", () => {
  const openTickets = async (inboxId: string) =>
    (await bench.reviewer.inboxEvent(inboxId)).tickets.filter(({ resolvedAt }) => resolvedAt === null);

  it("keeps who and why, closes its tickets, and is never replayed", async () => {
    const inboxId = await bench.quarantined();
    expect(await openTickets(inboxId)).toHaveLength(1);
    await bench.reviewer.discardEvent(inboxId, { who, why: "a test of the sender" });
    const after = await bench.reviewer.inboxEvent(inboxId);
    expect(after).toMatchObject({
      status: "DISCARDED",
      discardedBy: who,
      discardReason: "a test of the sender",
      hasBody: true,
      replay: { outcome: "nothing", reason: "event-is-settled" },
      tickets: [{ resolvedBy: "person:u-17", resolution: "event discarded: a test of the sender" }],
    });
    await unchanged(async () => {
      expect(await bench.reviewer.replayEvent(inboxId, who)).toMatchObject({
        replayed: false,
        reason: "event-is-settled",
      });
    });
  });

  it("has its tickets closed under an id in capitals, too", async () => {
    const inboxId = await bench.quarantined();
    await bench.reviewer.discardEvent(inboxId.toUpperCase(), { who, why: "a test" });
    expect(await openTickets(inboxId)).toEqual([]);
  });

  it("can't be discarded twice, nor can one that is not a person's, nor another tenant's", async () => {
    const inboxId = await bench.quarantined();
    await bench.reviewer.discardEvent(inboxId, { who, why: "a test" });
    const theirs = await bench.quarantined({}, "bravo/main");
    const settled: [string, string][] = [
      [inboxId, "DISCARDED"],
      [await bench.stored(), "RECEIVED"],
      [await bench.standing("APPLIED"), "APPLIED"],
      [await bench.standing("NO_OP"), "NO_OP"],
    ];
    await unchanged(async () => {
      for (const [id, status] of settled) {
        await expect(bench.reviewer.discardEvent(id, { who, why: "again" })).rejects.toMatchObject({
          status: 409,
          problem: { type: "/problems/event-is-settled", status: 409, eventStatus: status },
        });
      }
      for (const id of [theirs, newId()]) {
        await expect(bench.reviewer.discardEvent(id, { who, why: "x" })).rejects.toMatchObject({ status: 404 });
      }
    });
  });

  it.each([
    ["an empty reason", { who, why: " " }, "reason-missing", "why"],
    ["an address in the reason", { who, why: "anna@example.com says so" }, "reason-unsuitable", "why"],
    ["an address as who", { who: "anna@example.com", why: "x" }, "reason-unsuitable", "who"],
    ["a name as who", { who: "Anna Smith", why: "x" }, "invalid", "who"],
    ["nobody", { why: "x" }, "invalid", "who"],
    ["no reason", { who }, "invalid", "why"],
    ["a reason that is too long", { who, why: "x".repeat(501) }, "invalid", "why"],
    ["a reason that can't be stored", { who, why: "NUL \u0000" }, "reason-unsuitable", "why"],
  ])("needs somebody and a reason: %s is refused, and not repeated", async (_name, body, code, field) => {
    const inboxId = await bench.quarantined();
    await unchanged(async () => {
      const answer = await post(`/v1/inbox/${inboxId}/discard`, body);
      expect(answer.body).toMatchObject({ status: 422, type: `/problems/${code}`, errors: [{ field }] });
      expect(JSON.stringify(answer.body)).not.toMatch(/anna/i);
    });
  });
});
