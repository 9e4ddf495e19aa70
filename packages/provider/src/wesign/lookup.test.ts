import { afterEach, describe, expect, it } from "vitest";
import { HttpTransport } from "../http-call.js";
import { closeServers, httpServer } from "../testing/servers.js";
import { WeSign } from "./wesign.js";

const wesign = new WeSign(new HttpTransport({ keepAliveMs: 100 }));
afterEach(closeServers);

const own = { operation_id: "op-1", tenant: "acme" };
const item = (id: string, metadata: unknown = own, status = "sent") => ({ id, status, metadata });
const list = (data: unknown[], next?: string) =>
  next === undefined ? { data, has_more: false, next_cursor: null } : { data, has_more: true, next_cursor: next };

/** Answers by path and query; what is asked is kept. */
async function provider(answer: (url: URL) => unknown, status = 200, headers: Record<string, string> = {}) {
  const asked: URL[] = [];
  const server = await httpServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://provider");
    asked.push(url);
    const body = answer(url);
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const call = { baseUrl: server.baseUrl, credential: "wsk_test", deadlineMs: 5_000 };
  const byMetadata = { by: "metadata", tenantId: "acme", operationId: "op-1" } as const;
  return {
    asked,
    call,
    find: (createdAfter?: Date) =>
      wesign.lookup({ ...byMetadata, ...(createdAfter === undefined ? {} : { createdAfter }) }, call),
    read: (ref: string) => wesign.lookup({ by: "reference", ref }, call),
  };
}

describe("by metadata", () => {
  it("asks for our operation, and finds it with its status and ids", async () => {
    const { asked, find } = await provider(() => list([item("sr_1", { ...own, deal: "42" }, "viewed")]));
    expect(await find(new Date("2026-11-30T12:00:00Z"))).toEqual({
      kind: "found",
      matches: [{ ref: "sr_1", status: "viewed", operationId: "op-1", tenantId: "acme" }],
      pages: 1,
      ms: expect.any(Number),
    });
    expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toEqual({
      "metadata[operation_id]": "op-1",
      created_after: "2026-11-30T12:00:00.000Z",
      limit: "100",
    });
  });

  it("follows the list to its last page, and one request on two pages is one", async () => {
    const pages: Record<string, unknown> = { "": list([], "a"), a: list([item("sr_1")], "b&=") };
    const { find } = await provider(
      (url) => pages[url.searchParams.get("cursor") ?? ""] ?? list([item("sr_1"), item("sr_2")]),
    );
    const result = await find();
    expect(result).toMatchObject({ kind: "found", pages: 3 });
    expect(result.kind === "found" && result.matches.map(({ ref }) => ref)).toEqual(["sr_1", "sr_2"]);
  });

  it("drops what is not ours and says so: a filter that is ignored makes no match", async () => {
    const strangers = [
      { ...own, tenant: "other" },
      { ...own, operation_id: "op-2" },
      { operation_id: "op-1" },
      {},
      null,
    ];
    const { find } = await provider(() =>
      list(strangers.map((metadata, index) => item(`sr_${index}`, metadata, "odd"))),
    );
    expect(await find()).toMatchObject({ kind: "found", matches: [], otherItems: 5 });
  });

  it.each<[string, (url: URL) => unknown]>([
    ["item-without-metadata", () => list([{ id: "sr_1", status: "sent" }])],
    ["unknown-status", () => list([item("sr_1", own, "archived")])],
    ["no-usable-reference", () => list([item("")])],
    ["unexpected-list-shape", () => ({ data: [] })],
    ["unexpected-list-shape", () => ({ data: {}, has_more: false })],
    ["unexpected-list-shape", () => list(["sr_1"])],
    ["no-next-cursor", () => ({ data: [], has_more: true, next_cursor: null })],
    ["repeated-cursor", () => list([], "again")],
    ["too-many-pages", (url) => list([], `${url.searchParams.get("cursor") ?? ""}x`)],
    ["unparsable-answer", () => "<html></html>"],
    ["unparsable-answer", () => '{"data":[],"has_more":false'],
  ])("proves nothing with %s: case %#", async (cause, answer) => {
    const { find } = await provider(answer);
    expect(await find()).toMatchObject({ kind: "failed", cause });
  });

  it.each([
    [429, "rate_limited", "rate_limited", 30_000],
    [401, "unauthorized", "unauthorized", 30_000],
    [503, "unavailable", "server-error", 30_000],
    [404, "not_found", "not_found", 30_000],
  ])("fails on %i, with the wait that was asked for", async (status, code, cause) => {
    const { find } = await provider(() => ({ error: { code } }), status, { "retry-after": "30" });
    const result = await find();
    expect(result).toMatchObject({ kind: "failed", cause });
    if (status === 429 || status === 503) expect(result).toMatchObject({ retryAfterMs: 30_000 });
  });

  it("has one deadline for the whole walk", async () => {
    const server = await httpServer((request, response) => {
      const cursor = new URL(request.url ?? "/", "http://provider").searchParams.get("cursor") ?? "";
      setTimeout(() => response.end(JSON.stringify(list([], `${cursor}x`))), 60);
    });
    const call = { baseUrl: server.baseUrl, credential: "x", deadlineMs: 200 };
    const result = await wesign.lookup({ by: "metadata", tenantId: "acme", operationId: "op-1" }, call);
    expect(result).toMatchObject({ kind: "failed", cause: "deadline" });
  });
});

describe("by reference", () => {
  it("reads the request", async () => {
    const { asked, read } = await provider(() => item("sr/1", own, "withdrawn"));
    expect(await read("sr/1")).toMatchObject({
      kind: "found",
      matches: [{ ref: "sr/1", status: "withdrawn", operationId: "op-1", tenantId: "acme" }],
    });
    expect(asked[0]?.pathname).toBe("/v1/signing-requests/sr%2F1");
  });

  it("is absent only in the provider's own error form", async () => {
    const own404 = await provider(() => ({ error: { code: "not_found", message: "x" } }), 404);
    expect(await own404.read("sr_1")).toMatchObject({ kind: "not-found" });
    const bare404 = await provider(() => "<html>Not Found</html>", 404);
    expect(await bare404.read("sr_1")).toMatchObject({ kind: "failed", cause: "unrecognised-answer" });
  });

  it("an answer about another request, and a reference that is none, prove nothing", async () => {
    const { read } = await provider(() => item("sr_2"));
    expect(await read("sr_1")).toMatchObject({ kind: "failed", cause: "answer-names-another-request" });
    expect(await read("..")).toMatchObject({ kind: "failed", cause: "unusable-reference" });
  });

  it("a provider that cannot be reached is a failed look", async () => {
    const call = { baseUrl: "http://127.0.0.1:1", credential: "x", deadlineMs: 1_000 };
    expect(await wesign.lookup({ by: "reference", ref: "sr_1" }, call)).toMatchObject({
      kind: "failed",
      cause: "ECONNREFUSED",
    });
  });
});

describe("one list for many", () => {
  const many = (baseUrl: string, operationIds: string[]) =>
    wesign.lookupMany(
      { tenantId: "acme", operationIds, createdAfter: new Date("2026-11-30T12:00:00Z") },
      { baseUrl, credential: "wsk_test", deadlineMs: 5_000 },
    );

  it("is followed to its last page and shared out; another tenant's and another operation's items are nobody's", async () => {
    const pages: Record<string, unknown> = {
      "": list([item("sr_1"), item("sr_2", { ...own, tenant: "bravo" })], "a"),
      a: list([item("sr_3", { operation_id: "op-2", tenant: "acme" }, "viewed"), item("sr_4", {}), item("sr_1")]),
    };
    const { asked, call } = await provider((url) => pages[url.searchParams.get("cursor") ?? ""]);
    const result = await many(call.baseUrl, ["op-1", "op-2", "op-3"]);
    expect(result).toMatchObject({ kind: "found", pages: 2, items: 5 });
    expect(
      result.kind === "found" && [...result.matches].map(([id, found]) => [id, found.map(({ ref }) => ref)]),
    ).toEqual([
      ["op-1", ["sr_1"]],
      ["op-2", ["sr_3"]],
      ["op-3", []],
    ]);
    expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toEqual({
      created_after: "2026-11-30T12:00:00.000Z",
      limit: "100",
    });
  });

  it.each([
    ["an item leaves its metadata out", list([{ id: "sr_1", status: "sent" }]), "item-without-metadata"],
    ["a page names no next one", { data: [], has_more: true }, "no-next-cursor"],
    ["the cursor comes back", list([], "same"), "repeated-cursor"],
  ])("proves nothing where %s", async (_name, body, cause) => {
    const { call } = await provider(() => body);
    expect(await many(call.baseUrl, ["op-1"])).toMatchObject({ kind: "failed", cause });
  });
});

it("every page needs its permit, and the provider's own rate is handed on", async () => {
  const { call, asked } = await provider((url) => (url.searchParams.has("cursor") ? list([]) : list([], "a")), 200, {
    "ratelimit-remaining": "0",
    "ratelimit-reset": "7",
  });
  let permits = 1;
  const limits: unknown[] = [];
  const query = { by: "metadata", tenantId: "acme", operationId: "op-1" } as const;
  const result = await wesign.lookup(query, {
    ...call,
    permit: async () => {
      permits -= 1;
      return permits >= 0;
    },
    onRateLimit: (limit) => limits.push(limit),
  });
  expect(result).toMatchObject({ kind: "failed", cause: "no-permit" });
  expect(asked).toHaveLength(1);
  expect(limits).toEqual([{ remaining: 0, resetMs: 7_000 }]);
});
