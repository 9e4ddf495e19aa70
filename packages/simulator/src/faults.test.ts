import { describe, expect, it, vi } from "vitest";
import type { MutationFault } from "./fault-kinds.js";
import { call, codeOf, INSTANCE, idOf, instantiate, operation, send, sendForm, simulator } from "./test-support.js";

/** What a client saw of one call: a status, a status with an unreadable body, nothing, or its own timeout. */
async function seen(attempt: Promise<{ status: number; text: string; headers: Headers }>): Promise<string> {
  try {
    const { status, text, headers } = await attempt;
    if (status >= 300) return String(status);
    if (headers.get("content-type")?.startsWith("text/html")) return `${status} html`;
    return text === "{}" ? `${status} empty` : `${status}`;
  } catch (error) {
    if (error instanceof Error && error.name === "TimeoutError") return "timeout";
    return error instanceof Error && error.message === "terminated" ? "cut" : "reset";
  }
}

describe("a scripted fault of a send", () => {
  // kind, what the client sees, requests made by then, what a retry with the key sees, requests in the end
  it.each<[MutationFault, string, number, string, number]>([
    ["lost-response", "reset", 1, "201", 1],
    ["5xx-after-commit", "500", 1, "201", 2],
    ["5xx-before-commit", "500", 0, "201", 1],
    ["hang", "timeout", 0, "409", 0],
    ["hang-after-commit", "timeout", 1, "201", 1],
    ["truncated-2xx", "cut", 1, "201", 1],
    ["truncated-chunked", "cut", 1, "201", 1],
    ["unparsable-2xx", "201 html", 1, "201", 1],
    ["empty-2xx", "201 empty", 1, "201", 1],
    ["429-burst", "429", 0, "429", 0],
    ["reset-before-any-byte", "reset", 0, "201", 1],
    ["reset-before-commit", "reset", 0, "201", 1],
    ["crash-before-commit", "reset", 0, "409", 0],
    ["crash-after-commit", "reset", 1, "409", 1],
    ["duplicate-request", "201", 2, "201", 2],
  ])("%s: the client sees %s, %i made; a retry sees %s, %i in the end", async (kind, first, made, retry, total) => {
    const base = await simulator();
    base.script({ kind, operationId: "op-1" });
    const attempt = (signal?: AbortSignal) =>
      call(base, "POST", "/v1/signing-requests", {
        key: "k1",
        body: sendForm(operation("op-1")),
        ...(signal === undefined ? {} : { signal }),
      });
    expect(await seen(attempt(AbortSignal.timeout(first === "timeout" ? 250 : 10_000)))).toBe(first);
    expect(base.audit().totals.requests).toBe(made);
    expect(await seen(attempt())).toBe(retry);
    expect(base.audit().operations).toMatchObject([{ operationId: "op-1", arrivals: 2 }]);
    expect(base.audit().totals.requests).toBe(total);
  });

  it("crash-after-commit: the stale lock is taken over and a second request made", async () => {
    const base = await simulator();
    base.script({ kind: "crash-after-commit" });
    await expect(send(base, "k1")).rejects.toThrow();
    base.advanceClock(60_000);
    expect((await send(base, "k1")).status).toBe(201);
    expect(base.audit().totals.requests).toBe(2);
  });

  it("slow-commit: the request is made only after the client has gone, and its answer cached", async () => {
    const base = await simulator();
    base.script({ kind: "slow-commit", delayMs: 50 });
    const body = sendForm();
    const client = new AbortController();
    const attempt = call(base, "POST", "/v1/signing-requests", { key: "k1", body, signal: client.signal });
    attempt.catch(() => undefined);
    await vi.waitFor(() => expect(base.audit().faults.applied).toEqual({ "slow-commit": 1 }));
    expect(codeOf(await send(base, "k1"))).toBe("idempotency_in_progress");
    expect(base.audit().totals.requests).toBe(0);
    client.abort();
    await expect(attempt).rejects.toThrow();
    await base.waitIdle();
    expect(base.audit().totals.requests).toBe(1);
    expect((await send(base, "k1")).headers.get("idempotent-replayed")).toBe("true");
  });

  it("late-commit: the connection is cut at once and the request made later", async () => {
    const base = await simulator();
    base.script({ kind: "late-commit", delayMs: 100 });
    await expect(send(base, "k1")).rejects.toThrow();
    expect(base.audit().totals.requests).toBe(0);
    await base.waitIdle();
    expect(base.audit().totals.requests).toBe(1);
  });

  it("429-burst: every call of the workspace is refused with Retry-After, lookups too, until it is over", async () => {
    const base = await simulator();
    base.script({ kind: "429-burst", retryAfterSeconds: 7 });
    expect((await send(base)).headers.get("retry-after")).toBe("7");
    const lookup = await call(base, "GET", "/v1/signing-requests");
    expect([lookup.status, lookup.headers.get("ratelimit-remaining")]).toEqual([429, "0"]);
    base.advanceClock(7_000);
    expect((await send(base)).status).toBe(201);
  });

  it("answer: nothing is made, the key is free again, and it is answered as asked", async () => {
    const base = await simulator();
    base.script({ kind: "answer", status: 404, code: "address_mismatch", retryAfterSeconds: 9, operationId: "op-1" });
    base.script({ kind: "answer", status: 408, code: "daily_limit", endpoint: "withdraw" });
    const refused = await send(base, "k1", operation("op-1"));
    expect([refused.status, codeOf(refused), refused.headers.get("retry-after")]).toEqual([
      404,
      "address_mismatch",
      "9",
    ]);
    expect(base.audit().totals).toMatchObject({ requests: 0, mails: 0, arrivals: 1 });
    const id = idOf(await send(base, "k1", operation("op-1")));
    const declined = await call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
    expect([declined.status, codeOf(declined), declined.headers.get("retry-after")]).toEqual([
      408,
      "daily_limit",
      null,
    ]);
    expect(base.audit().totals).toMatchObject({ requests: 1, withdrawals: 0 });
    expect(base.audit().faults.applied).toEqual({ answer: 2 });
  });

  it("answer: a success that the key holds stays there", async () => {
    const base = await simulator();
    const id = idOf(await send(base, "k1"));
    base.script({ kind: "answer", status: 422, code: "idempotency_key_reuse" });
    expect(codeOf(await send(base, "k1"))).toBe("idempotency_key_reuse");
    expect(idOf(await send(base, "k1"))).toBe(id);
    expect(base.audit().totals.requests).toBe(1);
  });

  it.each([
    [{ kind: "answer", code: "x" }, "status"],
    [{ kind: "answer", status: 404 }, "code"],
    [{ kind: "answer", status: 200, code: "x" }, "status"],
    [{ kind: "5xx-before-commit", status: 404 }, "status"],
    [{ kind: "lost-response", code: "x" }, "code"],
  ])("is refused by the member that is wrong: %j", async (fault, member) => {
    const base = await simulator();
    const refused = await call(base, "POST", "/_control/faults", { body: JSON.stringify(fault) });
    expect([refused.status, codeOf(refused)]).toEqual([422, "invalid_control"]);
    expect(refused.text).toContain(`[0].${member}`);
    expect(base.audit().faults.scripted).toBe(0);
  });

  it("finds its call by the request's id", async () => {
    const base = await simulator();
    const [one, two] = [idOf(await send(base)), idOf(await send(base))];
    const withdraw = (id: string) => call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
    base.script({ kind: "5xx-before-commit", reference: two });
    expect([(await withdraw(one)).status, (await withdraw(two)).status, (await withdraw(two)).status]).toEqual([
      200, 500, 200,
    ]);
  });

  it("strikes withdraw, remind, confirm and instantiate as well", async () => {
    const base = await simulator();
    const id = idOf(await send(base, undefined, operation("op-1")));
    base.script({ kind: "lost-response", endpoint: "withdraw", operationId: "op-1" });
    expect((await call(base, "POST", `/v1/signing-requests/${id}/remind`)).status).toBe(200);
    await expect(call(base, "POST", `/v1/signing-requests/${id}/withdraw`)).rejects.toThrow();
    expect(base.audit().totals.withdrawals).toBe(1);
    base.script({ kind: "lost-response", endpoint: "instantiate" });
    await expect(instantiate(base, INSTANCE, "k1")).rejects.toThrow();
    expect((await instantiate(base, INSTANCE, "k1")).headers.get("idempotent-replayed")).toBe("true");
  });

  it("waits for the call it is meant for, as often as it is asked for", async () => {
    const base = await simulator();
    base.script({ kind: "5xx-before-commit", operationId: "op-2", tenant: "acme", times: 2, status: 502 });
    expect((await send(base, undefined, operation("op-1"))).status).toBe(201);
    expect((await send(base, undefined, operation("op-2", "other"))).status).toBe(201);
    expect((await send(base, undefined, operation("op-2"))).status).toBe(502);
    expect((await send(base, undefined, operation("op-2"))).status).toBe(502);
    expect((await send(base, undefined, operation("op-2"))).status).toBe(201);
  });
});

describe("faults by seed", () => {
  const spoiled = async (seed: string, options: object, count = 40) => {
    const base = await simulator({ seed, faults: options });
    const ids = Array.from({ length: count }, (_, n) => `op-${n}`);
    const statuses = await Promise.all(ids.map(async (id) => (await send(base, id, operation(id))).status));
    return { base, failed: ids.filter((_, n) => statuses[n] !== 201) };
  };

  it("are dealt to exactly as many first attempts as asked for", async () => {
    const dealFaults = { kinds: ["5xx-after-commit", "5xx-before-commit"] as const, count: 7, among: 40 };
    const { base, failed } = await spoiled("s", { dealFaults });
    expect(failed).toHaveLength(7);
    expect(base.audit().faults).toMatchObject({
      dealt: 7,
      toDeal: 7,
      firstAttempts: 40,
      applied: { "5xx-after-commit": 4, "5xx-before-commit": 3 },
    });
    for (const id of failed) expect((await send(base, id, operation(id))).status).toBe(201);
  });

  it("are drawn by rate, the same for the same seed however the calls interleave", async () => {
    const rates = { "5xx-before-commit": 0.3 };
    const one = await spoiled("s", { rates });
    expect(one.failed.length).toBeGreaterThan(0);
    expect(one.failed.length).toBeLessThan(40);
    expect((await spoiled("s", { rates })).failed).toEqual(one.failed);
    expect((await spoiled("another", { rates })).failed).not.toEqual(one.failed);
  });

  it("spare requests tagged as sandbox", async () => {
    const base = await simulator({ faults: { rates: { "5xx-before-commit": 1 } } });
    expect((await send(base, undefined, { metadata: '{"sandbox":"true"}' })).status).toBe(201);
    expect((await send(base)).status).toBe(500);
  });
});

describe("a fault of a lookup", () => {
  const list = async (base: Awaited<ReturnType<typeof simulator>>, id = "op-1") =>
    call(base, "GET", `/v1/signing-requests?metadata[operation_id]=${id}&metadata[tenant]=acme`);

  it("lookup-lag: the list hides young requests, reading by id does not", async () => {
    const base = await simulator({ lookupLagMs: 5_000 });
    const id = idOf(await send(base, undefined, operation("op-1")));
    expect((await list(base)).json.data).toEqual([]);
    expect((await call(base, "GET", `/v1/signing-requests/${id}`)).status).toBe(200);
    base.advanceClock(5_000);
    expect((await list(base)).json.data).toMatchObject([{ id }]);
    base.script({ kind: "lookup-lag", delayMs: 60_000 });
    expect((await list(base)).json.data).toEqual([]);
    expect((await list(base)).json.data).toMatchObject([{ id }]);
  });

  it("lookup-empty: the list says there is nothing, falsely", async () => {
    const base = await simulator();
    await send(base, undefined, operation("op-1"));
    base.script({ kind: "lookup-empty", operationId: "op-1" });
    expect((await list(base, "op-2")).json.data).toEqual([]);
    expect((await list(base)).json).toEqual({ data: [], has_more: false, next_cursor: null });
    expect((await list(base)).json.data).toHaveLength(1);
  });

  it("lookup-fail and lookup-hang strike list and read by id", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    base.script({ kind: "lookup-fail", endpoint: "get" }, { kind: "lookup-fail", endpoint: "list" });
    expect((await list(base)).status).toBe(503);
    expect((await call(base, "GET", `/v1/signing-requests/${id}`)).status).toBe(503);
    base.script({ kind: "lookup-hang" });
    const signal = AbortSignal.timeout(200);
    expect(await seen(call(base, "GET", `/v1/signing-requests/${id}`, { signal }))).toBe("timeout");
  });
});

describe("a fault of a read by id", () => {
  it("strikes the request or the operation that it names, and no other", async () => {
    const base = await simulator();
    const [one, two] = [
      idOf(await send(base, undefined, operation("op-1"))),
      idOf(await send(base, undefined, operation("op-2"))),
    ];
    const read = async (id: string) => (await call(base, "GET", `/v1/signing-requests/${id}`)).status;
    base.script({ kind: "lookup-fail", endpoint: "get", reference: two });
    expect([await read(one), await read(two), await read(two)]).toEqual([200, 503, 200]);
    base.script({ kind: "lookup-fail", endpoint: "get", operationId: "op-1" });
    expect([await read(two), await read(one), await read(one)]).toEqual([200, 503, 200]);
  });
});

describe("a poorer provider", () => {
  it("`poor` has neither keys nor list", async () => {
    const base = await simulator({ mode: "poor" });
    await send(base, "k1");
    const second = await send(base, "k1");
    expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([201, null]);
    expect(base.audit().totals.requests).toBe(2);
    expect((await call(base, "GET", "/v1/signing-requests")).status).toBe(404);
    expect((await call(base, "GET", `/v1/signing-requests/${idOf(second)}`)).status).toBe(200);
  });

  it("`list-ignores-filter` answers everything", async () => {
    const base = await simulator({ mode: "list-ignores-filter" });
    await send(base, undefined, operation("op-1"));
    await send(base, undefined, operation("op-2"));
    const found = await call(base, "GET", "/v1/signing-requests?metadata[operation_id]=op-none");
    expect(found.json.data).toHaveLength(2);
  });
});
