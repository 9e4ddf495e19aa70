import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestApi } from "./testing.js";

let api: TestApi;
let document: string;
beforeAll(async () => {
  api = await TestApi.start();
  document = await api.upload();
  await api.upload(undefined, api.keys.bravo);
});
afterAll(async () => {
  await api.stop();
});

const signer = { email: "signer@example.com", role: "customer", order: 1 };
const payload = (change: object = {}) => ({ documents: [{ sha256: document }], signers: [signer], ...change });
const send = (intentKey: string, change: object = {}) => ({ intentKey, action: "SEND", payload: payload(), ...change });
const id = (body: Record<string, unknown>): string => String(body.operationId);

describe("planning", () => {
  it("answers 201 after the commit, hands the job over, and tells where the operation is", async () => {
    const { status, headers, body } = await api.plan(send("plan-1"));
    expect(status).toBe(201);
    expect(body).toMatchObject({ state: "PLANNED", sent: "no", attempts: 0, alsoPlanned: [] });
    expect(headers.get("location")).toBe(`/v1/operations/${id(body)}`);
    expect(api.handedOver.map((job) => job.subjectId)).toContain(id(body));
    const { body: read } = await api.call("GET", `/v1/operations/${id(body)}`);
    expect(read).toMatchObject({ operationId: id(body), userMessage: "The request is recorded and will be sent." });
    expect(read.history).toHaveLength(1);
  });

  it("answers 200 and the same operation for the same approval, in any key order and spacing", async () => {
    const first = await api.plan(send("plan-2", { requestedBy: "user-1" }));
    const again = await api.call("POST", "/v1/operations", {
      body: `{ "payload" : {"signers":[{"order":1, "role":"customer","email":"signer@EXAMPLE.com"}],\n"documents":[{"fileName":"other.pdf","sha256":"${document}"}]},"action":"SEND","requestedBy":"user-2" }`,
      headers: { "idempotency-key": "plan-2" },
    });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect(again.body).toMatchObject({ operationId: id(first.body), duplicate: true, firstRequestedBy: "user-1" });
  });

  it("answers 409 and names the parts that differ, never their values", async () => {
    const first = await api.plan(send("plan-3"));
    const { status, body } = await api.plan(
      send("plan-3", { payload: payload({ signers: [{ ...signer, email: "other@example.com" }] }) }),
    );
    expect(status).toBe(409);
    expect(body).toMatchObject({
      type: "/problems/payload-conflict",
      differs: ["signers"],
      operationId: id(first.body),
    });
    expect(JSON.stringify(body)).not.toContain("example.com");
  });

  it("fifty at once, one of them changed: one row, one conflict or forty-nine, never a 5xx", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        api.plan(send("plan-race", index === 7 ? { payload: payload({ expiresInDays: 3 }) } : {})),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.every((status) => [200, 201, 409].includes(status))).toBe(true);
    expect([1, 49]).toContain(statuses.filter((status) => status === 409).length);
    expect(new Set(answers.map(({ body }) => id(body))).size).toBe(1);
  });

  it("of two tenants with one intent key makes two operations, neither visible to the other", async () => {
    const mine = await api.plan(send("shared"));
    const theirs = await api.plan(send("shared"), {}, api.keys.bravo);
    expect([mine.status, theirs.status]).toEqual([201, 201]);
    const foreign = await api.call("GET", `/v1/operations/${id(theirs.body)}`);
    const none = await api.call("GET", `/v1/operations/${newId()}`);
    expect([foreign.status, none.status]).toEqual([404, 404]);
    expect(foreign.body).toEqual(none.body);
  });

  it("of an amendment plans the VOID with it; a second amendment is refused and names the successor", async () => {
    const old = await api.plan(send("amended"));
    const next = await api.plan(send("amended-2", { supersedes: { operationId: id(old.body) } }));
    expect(next.status).toBe(201);
    const second = await api.plan(send("amended-3", { supersedes: { operationId: id(old.body) } }));
    expect(second.status).toBe(409);
    expect(second.body).toMatchObject({ type: "/problems/already-superseded", successor: id(next.body) });
  });

  it("of a VOID waits for its target", async () => {
    const target = await api.plan(send("voided"));
    const answer = await api.plan({ intentKey: "void-1", action: "VOID", target: { operationId: id(target.body) } });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ action: "VOID", target: id(target.body), state: "SUPERSEDED" });
  });
});

describe("waiting", () => {
  it("answers when the operation is resolved", async () => {
    const planned = await api.plan(send("wait-1"));
    const answer = api.call("GET", `/v1/operations/${id(planned.body)}`, { headers: { prefer: "wait=20" } });
    await api.plan({ intentKey: "wait-void", action: "VOID", target: { operationId: id(planned.body) } });
    const { headers, body } = await answer;
    expect(body).toMatchObject({ state: "SUPERSEDED" });
    expect(headers.get("preference-applied")).toBe("wait=20");
  });

  it("answers what is known when the time is over", async () => {
    const planned = await api.plan(send("wait-2"), { prefer: "wait=1" });
    expect(planned.body).toMatchObject({ state: "PLANNED" });
  });
});

it("lists by filter, newest first, page by page, each once", async () => {
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const { body } = await api.call("GET", `/v1/operations?limit=3${cursor === null ? "" : `&cursor=${cursor}`}`);
    const data = body.data;
    if (Array.isArray(data)) seen.push(...data.map((row: { operationId: string }) => row.operationId));
    cursor = typeof body.nextCursor === "string" ? body.nextCursor : null;
  } while (cursor !== null);
  const [row] = await api.ledger.sql<
    { count: number }[]
  >`SELECT count(*)::int AS count FROM signing_operation WHERE tenant_id = 'acme'`;
  expect(seen).toHaveLength(row?.count ?? -1);
  expect(new Set(seen).size).toBe(seen.length);
  const filtered = await api.call("GET", "/v1/operations?intentKey=plan-1");
  expect(filtered.body.data).toHaveLength(1);
});

describe("bad input is refused by field and changes nothing:", () => {
  const text = (intentKey: string, raw: string): string =>
    `{"intentKey":"${intentKey}","action":"SEND","payload":${raw}}`;
  const valid = () => JSON.stringify(payload());
  const cases: [string, () => Parameters<TestApi["call"]>[2], number, string][] = [
    ["no intent key", () => ({ body: JSON.stringify({ action: "SEND", payload: payload() }) }), 400, "intentKey"],
    ["an over-long intent key", () => ({ body: JSON.stringify(send("k".repeat(256))) }), 422, "intentKey"],
    ["an intent key with control characters", () => ({ body: JSON.stringify(send("a\u0007b")) }), 422, "intentKey"],
    ["a reserved intent key", () => ({ body: JSON.stringify(send("cs:void:1")) }), 422, "intentKey"],
    [
      "two different intent keys",
      () => ({ body: JSON.stringify(send("one")), headers: { "idempotency-key": "two" } }),
      400,
      "Idempotency-Key",
    ],
    ["an unknown action", () => ({ body: JSON.stringify({ intentKey: "x", action: "BURN" }) }), 422, "action"],
    [
      "words to the signer where the action takes none",
      () => ({
        body: JSON.stringify({
          intentKey: "x",
          action: "FINALIZE",
          target: { operationId: newId() },
          payload: { message: "please" },
        }),
      }),
      422,
      "payload.message",
    ],
    ["an unknown field", () => ({ body: JSON.stringify(send("x", { colour: "red" })) }), 422, "body"],
    [
      "a signer address with a line break",
      () => ({
        body: JSON.stringify(
          send("x", { payload: payload({ signers: [{ ...signer, email: "a@b.de\r\nBcc: c@d.de" }] }) }),
        ),
      }),
      422,
      "payload.signers.0.email",
    ],
    [
      "no signers",
      () => ({ body: JSON.stringify(send("x", { payload: payload({ signers: [] }) })) }),
      422,
      "payload.signers",
    ],
    [
      "no document",
      () => ({ body: JSON.stringify(send("x", { payload: payload({ documents: [] }) })) }),
      422,
      "payload.documents",
    ],
    [
      "a document never uploaded",
      () => ({ body: JSON.stringify(send("x", { payload: payload({ documents: [{ sha256: "ab".repeat(32) }] }) })) }),
      404,
      "",
    ],
    [
      "a field that the provider can't send",
      () => ({ body: JSON.stringify(send("x", { payload: payload({ reminders: { everyDays: 2 } }) })) }),
      422,
      "payload.reminders",
    ],
    [
      "a connection that does not exist",
      () => ({ body: JSON.stringify(send("x", { connection: "nowhere" })) }),
      422,
      "connection",
    ],
    [
      "no connection named where there are several",
      () => ({ body: JSON.stringify(send("x")), key: api.keys.charlie ?? "" }),
      400,
      "connection",
    ],
    [
      "a foreign target",
      () => ({ body: JSON.stringify({ intentKey: "x", action: "VOID", target: { operationId: newId() } }) }),
      404,
      "",
    ],
    ["a body that is not JSON", () => ({ body: "action=SEND" }), 400, "body"],
    ["an empty body", () => ({ body: "" }), 400, ""],
    ["another content type", () => ({ body: "x", type: "text/plain" }), 415, ""],
    ["duplicate keys", () => ({ body: `{"action":"SEND","action":"SEND"}` }), 400, "action"],
    [
      "duplicate keys deep inside",
      () => ({ body: text("x", `{"signers":[{"email":"a@b.de","email":"c@d.de"}]}`) }),
      400,
      "payload.signers",
    ],
    [
      "an unsafe integer",
      () => ({ body: text("x", valid().replace('"order":1', '"order":9007199254740993')) }),
      400,
      "payload.signers",
    ],
    [
      "a number out of range",
      () => ({ body: text("x", valid().replace('"order":1', '"order":1e400')) }),
      400,
      "payload.signers",
    ],
    ["a lone surrogate", () => ({ body: text("x", valid().replace("customer", "\\ud800")) }), 400, "payload.signers"],
    ["invalid UTF-8", () => ({ body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }), 400, "body"],
    ["no token", () => ({ body: JSON.stringify(send("x")), key: null }), 401, ""],
    ["a bad token", () => ({ body: JSON.stringify(send("x")), key: `csk_${"a".repeat(43)}` }), 401, ""],
    ["a token without the scope", () => ({ body: JSON.stringify(send("x")), key: api.keys.reader ?? "" }), 403, ""],
  ];
  for (const [name, options, status, field] of cases) {
    it(name, async () => {
      const before = await api.counts();
      const answer = await api.call("POST", "/v1/operations", options());
      expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, expect.anything()]);
      expect(answer.headers.get("content-type")).toContain("application/problem+json");
      expect(answer.body).toMatchObject({
        status,
        type: expect.stringMatching(/^\/problems\//),
        title: expect.any(String),
      });
      const errors = answer.body.errors;
      if (field !== "")
        expect(Array.isArray(errors) ? errors.map((error: { field: string }) => error.field).join() : "").toContain(
          field,
        );
      expect(await api.counts()).toEqual(before);
    });
  }

  const documents: [string, () => Parameters<TestApi["call"]>[2], number][] = [
    ["an empty PDF", () => ({ body: "", type: "application/pdf" }), 400],
    ["a text file named PDF", () => ({ body: "hello", type: "application/pdf" }), 400],
    [
      "one byte above the limit",
      () => ({ body: Buffer.concat([Buffer.from("%PDF-1.4"), Buffer.alloc(20_000 - 8 + 1)]), type: "application/pdf" }),
      413,
    ],
    ["another content type", () => ({ body: "%PDF-1.4", type: "text/plain" }), 415],
  ];
  for (const [name, options, status] of documents) {
    it(`document: ${name}`, async () => {
      const before = await api.counts();
      const answer = await api.call("PUT", "/v1/documents", options());
      expect(answer.status).toBe(status);
      expect(await api.counts()).toEqual(before);
    });
  }

  it("document: exactly at the limit is taken, and twice is once", async () => {
    const bytes = Buffer.concat([Buffer.from("%PDF-1.4"), Buffer.alloc(20_000 - 8)]);
    const first = await api.upload(bytes);
    const before = await api.counts();
    expect(await api.upload(bytes)).toBe(first);
    expect(await api.counts()).toEqual(before);
  });

  it("a malformed operation id, and an unknown query", async () => {
    expect((await api.call("GET", "/v1/operations/not-an-id")).status).toBe(422);
    expect((await api.call("GET", "/v1/operations?colour=red")).status).toBe(422);
    expect((await api.call("GET", "/nowhere")).status).toBe(404);
  });
});

it("planted markers stand in no log line, metric or error text", async () => {
  const markers = {
    address: "marker-address@example.com",
    name: "Marker Name",
    message: "marker-message",
    file: "marker-file.pdf",
    intent: "marker-intent",
  };
  const bad = { ...signer, email: "marker-address@example.com\n", name: markers.name };
  const answers = [
    await api.plan(
      send(markers.intent, {
        payload: payload({
          signers: [{ ...signer, email: markers.address, name: markers.name }],
          documents: [{ sha256: document, fileName: markers.file }],
        }),
      }),
    ),
    await api.plan(send(markers.intent, { payload: payload() })),
    await api.plan(send(markers.intent, { payload: payload({ signers: [bad], message: markers.message }) })),
    await api.call("GET", `/v1/operations?intentKey=${markers.intent}&state=marker-query`),
    await api.call("GET", `/v1/operations/${markers.intent}`),
    await api.call("POST", "/v1/operations", {
      body: `{"intentKey":"${markers.intent}","x":"${markers.message}"`,
      headers: { "x-forwarded-for": "203.0.113.77" },
    }),
  ];
  const refused = answers.filter(({ status }) => status >= 400).map(({ body }) => JSON.stringify(body));
  const { body: metrics } = await api.metrics.render();
  const all = [...api.logLines, metrics, ...refused].join("\n");
  for (const marker of [...Object.values(markers), "marker-query", "203.0.113.77", api.keys.acme ?? "?", "Marker"]) {
    expect(all).not.toContain(marker);
  }
  expect(api.logLines.length).toBeGreaterThan(5);
});

describe("the description of the API", () => {
  it("is OpenAPI 3.1 with every route, and can be browsed", async () => {
    const { body } = await api.call("GET", "/openapi.json");
    expect(body.openapi).toBe("3.1.0");
    expect(Object.keys(Object(body.paths))).toEqual(
      expect.arrayContaining(["/v1/operations", "/v1/operations/{id}", "/v1/documents"]),
    );
    const page = await fetch(new URL("/docs/", api.url));
    expect(page.status).toBe(200);
    expect(await page.text()).not.toMatch(/https?:\/\/(?!127\.0\.0\.1)/);
  });
});
