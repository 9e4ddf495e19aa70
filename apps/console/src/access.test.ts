import { listConsoleActions, openTicket, revokeOperator } from "@countersign/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SessionCookies } from "./session-cookie.js";
import { TestConsole } from "./testing.js";

let at: TestConsole;
beforeAll(async () => {
  at = await TestConsole.start();
});
afterAll(async () => {
  await at.stop();
});

const everything = [
  ["GET", "/console/overview"],
  ["GET", "/console/actions"],
  ["POST", "/console/acme/search"],
  ["GET", "/api/acme/v1/operations"],
  ["GET", "/api/acme/v1/tickets"],
  ["GET", "/api/acme/v1/inbox"],
  ["GET", "/queues/api/queues"],
  ["PUT", "/queues/api/queues/submit/pause"],
] as const;

it.each(everything)("%s %s: nobody without a login, a forged cookie is none", async (method, path) => {
  expect((await at.call(method, path)).status).toBe(401);
  const { cookie, csrf } = await at.login("operator");
  const [name, value = ""] = cookie.split("=");
  const middle = value.split(".")[1] ?? "";
  const other = new SessionCookies(Buffer.alloc(32)).seal({
    operatorId: "00000000-0000-4000-8000-000000000000",
    nonce: "0123456789abcdef",
    expiresAt: Date.now() + 60_000,
  });
  const old = at.cookies.seal({
    operatorId: "00000000-0000-4000-8000-000000000000",
    nonce: "0123456789abcdef",
    expiresAt: Date.now() - 1,
  });
  const changed = value.replace(middle, Buffer.from('{"operatorId":"x"}').toString("base64url"));
  for (const forged of [`${value}x`, value.slice(0, -2), changed, other, old, "v1..", "", middle]) {
    const answer = await at.call(method, path, { login: { cookie: `${name}=${forged}`, csrf } });
    expect(answer.status, forged).toBe(401);
  }
});

it("a token logs in, a wrong one doesn't, and a revoked one ends within seconds", async () => {
  expect((await at.call("POST", "/console/session", { body: { token: "cso_wrong" } })).status).toBe(401);
  const login = await at.login("viewer");
  const answer = await at.call("GET", "/console/session", { login });
  expect(answer.body).toMatchObject({ operator: "vera", role: "viewer", tenants: ["acme", "bravo"] });
  const set = (
    await at.call("POST", "/console/session", { body: { token: at.tokens.viewer } })
  ).headers.getSetCookie()[0];
  expect(set).toMatch(/HttpOnly/);
  expect(set).toMatch(/SameSite=Strict/);
  const [row] = await at.ledger.sql<{ id: string }[]>`
    INSERT INTO console_operator (operator_id, name, role, token_hash)
    SELECT gen_random_uuid(), 'rita', 'viewer', sha256('cso_rita') RETURNING operator_id AS id`;
  const rita = await at.call("POST", "/console/session", { body: { token: "cso_rita" } });
  const cookie = rita.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  await revokeOperator(at.ledger, row?.id ?? "");
  await expect
    .poll(async () => (await at.call("GET", "/console/session", { login: { cookie, csrf: "" } })).status, {
      timeout: 8_000,
    })
    .toBe(401);
});

it("a viewer sees and does nothing; an operator's name stands, whatever name is given; each act is recorded", async () => {
  await openTicket(at.ledger.sql, {
    tenantId: "acme",
    kind: "dead-letter",
    subjectKind: "operation",
    subjectId: "0192f0c0-0000-7000-8000-000000000001",
    reason: "too-many",
  });
  const viewer = await at.login("viewer");
  const { body } = await at.call("GET", "/api/acme/v1/tickets", { login: viewer });
  const [ticket] = Array.isArray(body.data) ? body.data : [];
  const path = `/api/acme/v1/tickets/${ticket.ticketId}/resolve`;
  const request = { who: "somebody-else", resolution: "looked into it" };
  const refused = await at.call("POST", path, { login: viewer, body: request });
  expect(refused.status).toBe(403);
  for (const [method, url] of [
    ["POST", "/api/acme/v1/inbox/00000000-0000-4000-8000-000000000000/replay"],
    ["PUT", "/queues/api/queues/submit/pause"],
    ["POST", "/console/acme/operations/0192f0c0-0000-7000-8000-000000000000/reveal"],
  ] as const) {
    const body = method === "PUT" ? {} : { who: "x", why: "because" };
    const answer = await at.call(method, url, { login: viewer, body, headers: { origin: at.url } });
    expect([answer.status, answer.body.code ?? answer.body.type], url).toEqual([
      answer.status === 422 ? 422 : 403,
      answer.status === 422 ? "/problems/invalid" : "/problems/forbidden",
    ]);
  }
  const operator = await at.login("operator");
  expect((await at.call("POST", path, { login: operator, body: request })).status).toBe(204);
  const closed = await at.call("GET", `/api/acme/v1/tickets/${ticket.ticketId}`, { login: operator });
  expect(closed.body).toMatchObject({ resolvedBy: "person:otto", resolution: "looked into it" });
  // The end is written after the answer.
  await expect
    .poll(async () => await listConsoleActions(at.ledger, { tenants: ["acme"], subjectId: ticket.ticketId, limit: 9 }))
    .toMatchObject([
      { operator: "otto", action: "POST /api/:tenant/v1/tickets/:id/resolve", why: "looked into it", status: 204 },
      { operator: "vera", action: "POST /api/:tenant/v1/tickets/:id/resolve", status: 403 },
    ]);
  const planned = await at.call("POST", "/api/acme/v1/operations", {
    login: operator,
    body: { action: "VOID", intentKey: "k", target: { providerRef: "r" } },
  });
  expect(planned.status).toBe(403);
});

it("another tenant is not there", async () => {
  const login = await at.login("bravo");
  for (const path of [
    "/api/acme/v1/operations",
    "/api/acme/v1/tickets",
    "/api/acme/v1/inbox",
    "/console/overview?tenant=acme",
    "/console/actions?tenant=acme",
    "/console/acme/operations/0192f0c0-0000-7000-8000-000000000000",
    "/api/nobody/v1/operations",
  ]) {
    expect((await at.call("GET", path, { login })).status, path).toBe(404);
  }
  expect((await at.call("POST", "/console/acme/search", { login, body: { text: "x" } })).status).toBe(404);
  const resolve = { who: "x", resolution: "mine now" };
  const ticket = "/api/acme/v1/tickets/00000000-0000-4000-8000-000000000000/resolve";
  expect((await at.call("POST", ticket, { login, body: resolve })).status).toBe(404);
  expect((await at.call("GET", "/queues/api/queues", { login })).status).toBe(403);
  const { body } = await at.call("GET", "/console/overview", { login });
  expect(body.tickets).toEqual([]);
  expect((await at.call("GET", "/api/bravo/v1/operations", { login })).status).toBe(200);
});

it("a request that another site's page may have made is refused", async () => {
  const login = await at.login("operator");
  const path = "/api/acme/v1/tickets/00000000-0000-4000-8000-000000000000/resolve";
  const body = { who: "x", resolution: "done" };
  const status = async (headers: Record<string, string>, csrf = login.csrf): Promise<number> =>
    (await at.call("POST", path, { login: { ...login, csrf }, body, headers })).status;
  expect(await status({})).toBe(404);
  expect(await status({ origin: at.url })).toBe(404);
  expect(await status({ origin: "https://evil.example" })).toBe(403);
  expect(await status({ origin: "null" })).toBe(403);
  expect(await status({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await status({ "sec-fetch-site": "same-site" })).toBe(403);
  expect(await status({}, "")).toBe(403);
  expect(await status({}, (await at.login("operator")).csrf)).toBe(403);
  const foreign = { origin: "https://evil.example" };
  const token = { token: at.tokens.operator };
  expect((await at.call("POST", "/console/session", { body: token, headers: foreign })).status).toBe(403);
  expect((await at.call("PUT", "/queues/api/queues/submit/pause", { login, headers: foreign })).status).toBe(403);
  expect((await at.call("PUT", "/queues/api/queues/submit/pause", { login })).status).toBe(403);
});

it("Bull Board pauses for an operator, and neither adds, edits, empties nor asks another house", async () => {
  const login = await at.login("operator");
  const headers = { origin: at.url };
  expect((await at.call("PUT", "/queues/api/queues/submit/pause", { login, headers })).status).toBe(200);
  expect(await at.queues.queue("submit").isPaused()).toBe(true);
  expect((await at.call("PUT", "/queues/api/queues/submit/resume", { login, headers })).status).toBe(200);
  expect(await at.queues.queue("submit").isPaused()).toBe(false);
  for (const [method, rest] of [
    ["POST", "submit/add"],
    ["PUT", "submit/empty"],
    ["PUT", "submit/obliterate"],
    ["PATCH", "submit/j1/update-data"],
    ["PUT", "submit/concurrency"],
    ["PUT", "submit/clean/failed"],
    ["PUT", "submit/j1/clean"],
  ] as const) {
    const answer = await at.call(method, `/queues/api/queues/${rest}`, { login, headers, body: {} });
    expect(answer.status, rest).toBe(405);
  }
  const page = await at.call("GET", "/queues", { login });
  expect(page.status).toBe(200);
  expect(page.text).toContain("static/js");
  expect(page.text).not.toContain("googleapis");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
  expect((await at.call("GET", "/queues")).headers.get("location")).toBe("/login");
});
