import { describe, expect, it } from "vitest";
import { answer } from "./answer.js";
import { Clock } from "./clock.js";
import { IdempotencyKeys } from "./idempotency.js";
import { call, send, sendForm, simulator } from "./test-support.js";

const HOUR_MS = 3_600_000;

function keys() {
  const clock = new Clock();
  return { clock, keys: new IdempotencyKeys(clock, { staleLockMs: 60_000, retentionMs: 24 * HOUR_MS }) };
}

function run(rows: IdempotencyKeys) {
  const begun = rows.begin("w", "k", "hash");
  if (begun.kind !== "run") throw new Error("expected the call to run");
  return begun.slot;
}

describe("idempotency rows", () => {
  it("are pruned when their 24 hours are over, not before", () => {
    const { clock, keys: rows } = keys();
    run(rows).succeed(answer(201, {}));
    clock.advance(23 * HOUR_MS);
    rows.prune();
    expect(rows.size).toBe(1);
    clock.advance(HOUR_MS);
    rows.prune();
    expect(rows.size).toBe(0);
  });

  it("count their lifetime from the first call, also after a takeover", () => {
    const { clock, keys: rows } = keys();
    run(rows);
    clock.advance(HOUR_MS);
    run(rows).succeed(answer(201, {}));
    clock.advance(23 * HOUR_MS);
    expect(rows.begin("w", "k", "another hash").kind).toBe("run");
  });

  it("are finished only by the call that holds them: one that was taken over neither caches nor releases", () => {
    const { clock, keys: rows } = keys();
    const slow = run(rows);
    clock.advance(60_000);
    const taker = run(rows);
    slow.release();
    slow.succeed(answer(201, "slow"));
    expect(() => rows.begin("w", "k", "hash")).toThrow(expect.objectContaining({ code: "idempotency_in_progress" }));
    taker.succeed(answer(201, "taker"));
    expect(rows.begin("w", "k", "hash")).toMatchObject({ kind: "replay", answer: { body: '"taker"' } });
  });
});

describe("the contract's retry-aware client", () => {
  it("ends with one request after a lost response, a 429 and a call in progress", async () => {
    const base = await simulator({ staleLockMs: 50 });
    base.script({ kind: "crash-before-commit" }, { kind: "429-burst" }, { kind: "lost-response" });
    const outcomes: (number | "lost")[] = [];
    for (let attempt = 1; attempt <= 6; attempt += 1) {
      const reply = await send(base, "k1").catch(() => undefined);
      outcomes.push(reply?.status ?? "lost");
      if (reply?.status === 201) break;
      base.advanceClock(Number(reply?.headers.get("retry-after") ?? "0") * 1_000);
    }
    expect(outcomes.at(-1)).toBe(201);
    expect(outcomes).toContain(429);
    expect(base.audit().totals.requests).toBe(1);
    const replay = await call(base, "POST", "/v1/signing-requests", { key: "k1", body: sendForm() });
    expect(replay.headers.get("idempotent-replayed")).toBe("true");
  });
});
