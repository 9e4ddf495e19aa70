import type { DryRunRow } from "@countersign/client/transaction";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Fate, newRef, ReplayScene, type Standing, type Story } from "./replay-scene.js";

let replay: ReplayScene;
beforeAll(async () => {
  replay = await ReplayScene.start();
});
afterAll(async () => {
  await replay.stop();
});
// Nothing of another test is replayed with the next one's.
beforeEach(async () => {
  await replay.sql`UPDATE webhook_inbox SET status = 'NO_OP', due_at = NULL`;
});

/** How a row must stand after it was applied, by what the dry run said of it. */
function foretold({ preview: { outcome, reason, status } }: DryRunRow): Standing {
  switch (outcome) {
    case "applied":
      return { status: "APPLIED", outcome: status };
    case "nothing":
      return { status: "NO_OP", outcome: reason };
    case "conflict":
      return { status: "CONFLICT", outcome: reason };
    case "waits":
      return { status: "WAITING", outcome: reason };
    case "quarantined":
      return { status: "QUARANTINED", outcome: reason };
    case "asks-provider":
      return { status: "WAITING", outcome: "asks-the-provider" };
    case "fails":
      return { status: "RECEIVED", outcome: reason };
  }
}

/** Replays whatever may be, and compares each row's end with the dry run's word. Returns that word. */
async function comesTrue(): Promise<DryRunRow[]> {
  const told = await replay.dryRun();
  const ids = told.map(({ event }) => event.inboxId);
  expect(await replay.replay()).toEqual(ids);
  for (const row of told) {
    const { inboxId } = row.event;
    await replay.apply(inboxId);
    const stands = await replay.standing(inboxId);
    expect({ ...row.preview, ...stands }).toEqual({ ...row.preview, ...foretold(row) });
    const open = ["CONFLICT", "QUARANTINED"].includes(stands?.status ?? "");
    if (["APPLIED", "NO_OP"].includes(stands?.status ?? "") || open)
      expect(await replay.openTickets(inboxId)).toBe(open ? 1 : 0);
    const { evidenceFor } = row.preview;
    if (evidenceFor !== null) expect((await replay.scene.operation(evidenceFor)).referencesSeen).toBeGreaterThan(0);
  }
  return told;
}

const words = (told: readonly DryRunRow[]): string[] =>
  told.map(({ preview: { outcome, reason, status } }) => [outcome, reason ?? status].join(" "));
const request = (word: string): string => `signing_request.${word}`;
const ours = (operationId: string, tenant = "acme") => ({ operationId, tenant });

describe("the dry run's word is what happens", () => {
  /** Delivers each story, leaves it to a person in turn in another way, and lets the dry run come true. */
  async function told(
    stories: readonly Story[],
    fates: readonly Fate[] = ["QUARANTINED", "DEAD", "CONFLICT"],
  ): Promise<string[]> {
    for (const [index, story] of stories.entries()) {
      await replay.left(story, fates[index % fates.length] ?? "DEAD");
    }
    return words(await comesTrue());
  }

  it("for one request's whole life, told in the wrong order and more than once", async () => {
    const { ref } = await replay.confirmed();
    const life = [
      "sent",
      "signed",
      "viewed",
      "reminded",
      "completed",
      "completed",
      "declined",
      "withdrawn",
      "expired",
      "updated",
      "sent",
    ];
    expect(await told(life.map((word) => ({ type: request(word), ref })))).toEqual([
      "nothing already-sent",
      "applied PARTIALLY_SIGNED",
      "nothing already-partially_signed",
      "nothing no-meaning-for-status",
      "applied COMPLETED",
      "nothing already-completed",
      "conflict declined-after-completed",
      "conflict voided-after-completed",
      "conflict expired-after-completed",
      "nothing no-meaning-for-status",
      "nothing already-completed",
    ]);
  });

  it.each(["completed", "declined", "withdrawn", "expired"])("for the end `%s` against each other", async (end) => {
    const { ref } = await replay.confirmed();
    const [first, ...others] = await told(
      [end, "completed", "declined", "withdrawn", "expired", "viewed"].map((word) => ({ type: request(word), ref })),
    );
    expect(first).toMatch(/^applied/);
    expect(others.filter((word) => word.startsWith("conflict"))).toHaveLength(3);
  });

  it("for what nobody can read, and for what this build has no scheme for", async () => {
    const { ref } = await replay.confirmed();
    await replay.left({ at: "retired", type: request("viewed"), ref }, "DEAD");
    const unreadable = await told([
      { type: "contract.blessed", ref },
      { type: request("viewed") },
      { type: "", raw: "<xml/>" },
      { type: "", raw: '{"id":"evt_1","id":"evt_2"}' },
      { type: "", raw: '{"id":"evt_3","type":"signing_request.viewed"}' },
    ]);
    expect(unreadable[0]).toMatch(/^applied/);
    await replay.sql`UPDATE webhook_inbox SET status = 'NO_OP', due_at = NULL WHERE status <> 'QUARANTINED'`;
    await replay.retire();
    await replay.left({ type: request("sent"), ref }, "DEAD");
    await replay.sql`UPDATE webhook_inbox SET status = 'DEAD' WHERE endpoint_id IN (SELECT endpoint_id FROM webhook_endpoint WHERE scheme = 'retired')`;
    expect(words(await comesTrue())).toEqual([
      "fails scheme-unknown",
      "quarantined unknown-type",
      "quarantined no-reference",
      "quarantined not-json",
      "quarantined not-json",
      "quarantined shape",
      "nothing already-viewed",
    ]);
  });

  it("for what only hints: no body is proven, or no id", async () => {
    const { ref, operationId } = await replay.confirmed();
    expect(
      await told([
        { at: "dropbox-sign", type: "signature_request_viewed", ref },
        { at: "dropbox-sign", type: "signature_request_blessed", ref },
        { type: request("completed"), ref, nameless: true },
        { type: request("completed"), ref, nameless: true, names: ours(operationId) },
      ]),
    ).toEqual([
      "asks-provider body-not-authenticated",
      "quarantined unknown-type",
      "asks-provider id-derived",
      "asks-provider id-derived",
    ]);
  });

  it("for references that nothing is bound to, and whose metadata names an operation of ours", async () => {
    const [a, b] = [await replay.scene.planSend(), await replay.scene.planSend()];
    const [free, named, twice] = [newRef(), newRef(), newRef()];
    expect(
      await told([
        { type: request("sent"), ref: free },
        { type: request("sent"), ref: named, names: ours(a.operationId) },
        { type: request("viewed"), ref: named },
        // The reference is seen for one operation already, and now another is named.
        { type: request("viewed"), ref: named, names: ours(b.operationId) },
        { type: request("completed"), ref: named, names: ours(a.operationId) },
        // Nobody of ours: another tenant's word, an operation that there is not, no id at all.
        { type: request("sent"), ref: twice, names: ours(a.operationId, "bravo") },
        { type: request("sent"), ref: twice, names: ours(newId()) },
        { type: request("sent"), ref: twice, names: ours("op-17") },
      ]),
    ).toEqual([
      "waits unbound-reference",
      "waits unbound-reference",
      "waits unbound-reference",
      "conflict reference-of-another-operation",
      "waits unbound-reference",
      "waits unbound-reference",
      "waits unbound-reference",
      "waits unbound-reference",
    ]);
  });

  it("for a staged document that an event binds, and for what is told of it afterwards", async () => {
    const { operationId } = await replay.scene.planSend();
    const other = await replay.scene.planSend();
    const ref = newRef();
    expect(
      await told([
        { type: request("viewed"), ref },
        { type: "template_instance.staged", ref, names: ours(operationId) },
        { type: "template_instance.staged", ref },
        { type: request("sent"), ref },
        { type: request("viewed"), ref, names: ours(other.operationId) },
        { type: request("completed"), ref, names: ours(operationId) },
      ]),
    ).toEqual([
      "waits unbound-reference",
      "nothing already-staged",
      "nothing already-staged",
      "applied SENT",
      "conflict reference-of-another-operation",
      "applied COMPLETED",
    ]);
  });

  it("for metadata that names another operation than the one its reference is bound to", async () => {
    const [one, other, draft] = [await replay.confirmed(), await replay.confirmed(), await replay.staged()];
    const planned = await replay.scene.planSend();
    expect(
      await told([
        { type: request("viewed"), ref: one.ref, names: ours(other.operationId) },
        { type: request("viewed"), ref: one.ref, names: ours(planned.operationId) },
        { type: request("viewed"), ref: one.ref, names: ours(newId()) },
        { type: request("signed"), ref: one.ref, names: ours(one.operationId) },
        { type: request("sent"), ref: draft.ref, names: ours(planned.operationId) },
        { type: request("sent"), ref: draft.ref },
        { type: request("viewed"), ref: draft.ref, names: ours(draft.operationId) },
      ]),
    ).toEqual([
      "conflict reference-of-another-operation",
      "conflict reference-of-another-operation",
      "applied VIEWED",
      "applied PARTIALLY_SIGNED",
      "conflict reference-of-another-operation",
      "applied SENT",
      "applied VIEWED",
    ]);
  });

  it("for what nobody could read when it came in and somebody can today", async () => {
    const [one, other] = [await replay.confirmed(), await replay.confirmed()];
    const planned = await replay.scene.planSend();
    const free = newRef();
    expect(
      await told(
        [
          { type: request("viewed"), ref: one.ref },
          { type: request("sent"), ref: one.ref },
          { type: request("signed"), ref: one.ref, names: ours(other.operationId) },
          { type: request("sent"), ref: free },
          { type: request("sent"), ref: free, names: ours(planned.operationId) },
          { type: request("viewed"), ref: free, names: ours(one.operationId) },
          { type: request("viewed"), ref: other.ref, nameless: true },
        ],
        ["unread"],
      ),
    ).toEqual([
      "applied VIEWED",
      "nothing already-viewed",
      "conflict reference-of-another-operation",
      "waits unbound-reference",
      "waits unbound-reference",
      "conflict reference-of-another-operation",
      "asks-provider id-derived",
    ]);
    // Their rows name it now, like all others: a binding wakes what waits, and a poll finds what it is to ask for.
    const rows = await replay.sql<{ named: string | null }[]>`
      SELECT provider_ref AS named FROM webhook_inbox WHERE status IN ('APPLIED', 'WAITING') ORDER BY inbox_id`;
    expect(rows.map(({ named }) => named)).toEqual([one.ref, free, free, other.ref]);
  });

  it.each([1, 2, 3, 4, 5, 6])("for a hundred events of every kind in any order: seed %d", async (seed) => {
    const pick = picker(seed);
    const sends = [
      await replay.confirmed(),
      await replay.confirmed("VIEWED"),
      await replay.confirmed("DECLINED"),
      await replay.staged(),
    ];
    const planned = [await replay.scene.planSend(), await replay.scene.planSend()];
    const refs = [...sends.map(({ ref }) => ref), newRef(), newRef(), newRef()];
    const known = [...sends, ...planned].map(({ operationId }) => operationId);
    for (let n = 0; n < 100; n += 1)
      await replay.left(anyStory(pick, refs, known), pick(["QUARANTINED", "DEAD", "CONFLICT", "unread"] as const));
    const first = await comesTrue();
    expect(first).toHaveLength(100);
    const kinds = ["applied", "nothing", "conflict", "waits", "quarantined", "asks-provider"];
    expect(new Set(first.map(({ preview }) => preview.outcome))).toEqual(new Set(kinds));
    // Whatever is settled or on its way stays as it is; the rest is told the same again, and comes true again.
    const all = await replay.dryRun({ ids: first.map(({ event }) => event.inboxId) });
    for (const { event, preview } of all) {
      if (["APPLIED", "NO_OP"].includes(event.status))
        expect(preview).toMatchObject({ outcome: "nothing", reason: "event-is-settled" });
      if (["WAITING", "RECEIVED"].includes(event.status))
        expect(preview).toMatchObject({ outcome: "nothing", reason: "already-due" });
    }
    await comesTrue();
  });
});

const types = [
  ...["sent", "viewed", "signed", "completed", "declined", "withdrawn", "expired", "reminded", "blessed"].map(request),
  "template_instance.staged",
];

function anyStory(pick: ReturnType<typeof picker>, refs: readonly string[], known: readonly string[]): Story {
  const ref = pick(refs);
  const kind = pick(["plain", "plain", "plain", "ours", "ours", "theirs", "nameless", "hint", "raw"] as const);
  switch (kind) {
    case "hint":
      return { at: "dropbox-sign", type: pick(["signature_request_viewed", "signature_request_canceled", "odd"]), ref };
    case "raw":
      return { type: "", raw: `${pick(["", "[", '"'])}${newId()}` };
    case "theirs":
      return { type: pick(types), ref, names: { operationId: pick(known), tenant: "bravo" } };
    default:
      return {
        type: pick(types),
        ref,
        ...(kind === "ours" ? { names: ours(pick(known)) } : {}),
        nameless: kind === "nameless",
      };
  }
}

/** Picks of a seed, the same at every run. */
function picker(seed: number): <Item>(items: readonly Item[]) => Item {
  let state = seed;
  return (items) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const index = ((mixed ^ (mixed >>> 14)) >>> 0) % items.length;
    const item = items[index];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  };
}

describe("whoever presses, and however many", () => {
  it("each event is made due once, and applied once", async () => {
    const sends = [await replay.confirmed(), await replay.confirmed(), await replay.confirmed()];
    const left: string[] = [];
    for (const { ref } of sends) {
      for (const word of ["viewed", "viewed", "signed", "completed", "completed"]) {
        left.push(await replay.left({ type: request(word), ref }, "DEAD"));
      }
    }
    await replay.sql.unsafe(`
      CREATE TABLE test_move (ref text NOT NULL, to_status text NOT NULL);
      CREATE FUNCTION test_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO test_move VALUES (NEW.provider_ref, NEW.status); RETURN NULL; END $$;
      CREATE TRIGGER test_move AFTER UPDATE ON contract_signing FOR EACH ROW
        WHEN (NEW.status IS DISTINCT FROM OLD.status OR NEW.status_at IS DISTINCT FROM OLD.status_at) EXECUTE FUNCTION test_move();`);
    const pressed = await Promise.all(Array.from({ length: 5 }, () => replay.replay()));
    expect(pressed.flat().sort()).toEqual([...left].sort());
    const rows = await replay.sql<{ replays: number; status: string }[]>`
      SELECT replays, status FROM webhook_inbox WHERE inbox_id::text IN (SELECT jsonb_array_elements_text(${JSON.stringify(left)}::text::jsonb))`;
    expect(rows).toHaveLength(left.length);
    for (const row of rows) expect(row).toEqual({ replays: 1, status: "RECEIVED" });
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const mine: string[] = [];
        for (const inboxId of left) mine.push(await replay.apply(inboxId));
        return mine;
      }),
    );
    // Each row ends once, whoever was at it; for all others it is gone.
    expect(outcomes.flat().filter((outcome) => outcome !== "gone")).toHaveLength(left.length);
    const moves = await replay.sql<{ ref: string; to: string }[]>`SELECT ref, to_status AS to FROM test_move`;
    for (const { ref } of sends) {
      const to = moves.filter((move) => move.ref === ref).map((move) => move.to);
      expect(new Set(to).size).toBe(to.length);
      expect(to.at(-1)).toBe("COMPLETED");
    }
    for (const inboxId of left) {
      expect(["APPLIED", "NO_OP"]).toContain((await replay.standing(inboxId))?.status);
      expect(await replay.apply(inboxId)).toBe("gone");
    }
    expect(await replay.replay()).toEqual([]);
    expect(await replay.dryRun()).toEqual([]);
  });
});
