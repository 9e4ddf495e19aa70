import { describe, expect, it } from "vitest";
import { SimulatorConfigError } from "./config.js";
import { startSimulator } from "./start.js";
import { call, codeOf, idOf, operation, receiver, send, sendForm, simulator, withHook } from "./test-support.js";

describe("the API", () => {
  it("answers a send with the request: 201, sent, its signers, metadata and times", async () => {
    const base = await simulator();
    const made = await send(base, undefined, { ...operation("op-1"), expires_in_days: "7" });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      id: expect.stringMatching(/^sr_/),
      document_id: expect.stringMatching(/^doc_/),
      status: "sent",
      signers: [{ email: "signer@example.com", role: "customer", status: "pending" }],
      metadata: { tenant: "acme", operation_id: "op-1" },
      callback: null,
    });
    const lifetime = Date.parse(String(made.json.expires_at)) - Date.parse(String(made.json.created_at));
    expect(lifetime).toBe(7 * 86_400_000);
  });

  it("refuses an unknown key with 401 unauthorized", async () => {
    const base = await simulator();
    const refused = await call(base, "GET", "/v1/signing-requests", { token: "wsk_other" });
    expect([refused.status, codeOf(refused)]).toEqual([401, "unauthorized"]);
  });

  it.each([
    ["signers", null, "invalid_signers"],
    ["signers", "not json", "invalid_signers"],
    ["signers", '[{"email":"no address","role":"x"}]', "invalid_signers"],
    ["signers", '[{"email":"a@b\\u0000.example","role":"x"}]', "invalid_signers"],
    ["file", null, "invalid_document"],
    ["metadata", '{"a":1}', "invalid_metadata"],
    ["expires_in_days", "0", "invalid_expires_in_days"],
    ["send_emails", "maybe", "invalid_send_emails"],
    ["locale", "somewhere", "invalid_locale"],
    ["callback_url", "http://hooks.example.com", "invalid_callback_url"],
    ["file_url", "http://127.0.0.1:1/none.pdf", "invalid_document"],
  ])("refuses %s = %s with 422 %s and makes nothing", async (name, value, code) => {
    const base = await simulator();
    const refused = await send(base, undefined, { [name]: value });
    expect([refused.status, codeOf(refused)]).toEqual([422, code]);
    expect(base.audit().totals).toMatchObject({ requests: 0, drafts: 0 });
  });

  it("refuses what is not a PDF, what is too large, and what is no form", async () => {
    const base = await simulator({ maxFileBytes: 1_000 });
    const post = (body: FormData | string) => call(base, "POST", "/v1/signing-requests", { body });
    const form = (content: string) => {
      const changed = sendForm();
      changed.set("file", new Blob([content]), "contract.pdf");
      return changed;
    };
    expect(codeOf(await post(form("hello")))).toBe("invalid_document");
    expect(codeOf(await post(form("")))).toBe("invalid_document");
    expect(codeOf(await post(form(`%PDF-${"x".repeat(2_000)}`)))).toBe("document_too_large");
    expect((await post("{}")).status).toBe(415);
  });

  it("makes nothing of a validate_only send, and only stages one with review", async () => {
    const base = await simulator();
    const dryRun = await send(base, "k1", { validate_only: "true" });
    expect([dryRun.status, dryRun.json]).toEqual([200, { valid: true }]);
    const staged = await send(base, "k1", { review: "true" });
    expect([staged.status, staged.json.status]).toEqual([201, "staged"]);
    expect(base.audit().totals).toMatchObject({ requests: 0, drafts: 1, mails: 0 });
  });

  it("mails nobody when send_emails is false", async () => {
    const base = await simulator();
    await send(base, undefined, { send_emails: "false" });
    expect(base.audit().totals).toMatchObject({ requests: 1, mails: 0 });
  });

  it("shows one workspace nothing of another", async () => {
    const base = await simulator({
      workspaces: [
        { name: "one", keys: ["wsk_test"] },
        { name: "two", keys: ["wsk_two"] },
      ],
    });
    const id = idOf(await send(base));
    const token = "wsk_two";
    expect((await call(base, "GET", `/v1/signing-requests/${id}`, { token })).status).toBe(404);
    expect((await call(base, "POST", `/v1/signing-requests/${id}/withdraw`, { token })).status).toBe(404);
    expect((await call(base, "GET", "/v1/signing-requests", { token })).json.data).toEqual([]);
  });

  it("lists by metadata and time, from new to old, page by page", async () => {
    const base = await simulator();
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      ids.unshift(idOf(await send(base, undefined, operation(n === 2 ? "op-2" : "op-1"))));
      base.advanceClock(1_000);
    }
    const wanted = ids.filter((_, n) => n !== 2);
    const found: unknown[] = [];
    let cursor: unknown = "";
    for (let page = 0; page < 10 && cursor !== null; page += 1) {
      const path = `/v1/signing-requests?metadata[operation_id]=op-1&limit=3&${cursor === "" ? "" : `cursor=${cursor}`}`;
      const { json } = await call(base, "GET", path);
      found.push(...(Array.isArray(json.data) ? json.data : []));
      expect(json.has_more).toBe(json.next_cursor !== null);
      cursor = json.next_cursor;
    }
    expect(found).toMatchObject(wanted.map((id) => ({ id })));
    const third = await call(base, "GET", `/v1/signing-requests/${ids[2]}`);
    const after = encodeURIComponent(String(third.json.created_at));
    const younger = await call(base, "GET", `/v1/signing-requests?created_after=${after}`);
    expect(younger.json.data).toMatchObject([{ id: ids[0] }, { id: ids[1] }]);
    for (const query of ["limit=0", "limit=x", "cursor=x", "created_after=x"]) {
      expect((await call(base, "GET", `/v1/signing-requests?${query}`)).status, query).toBe(400);
    }
  });

  it("gives the sealed document of a completed request only, the same bytes each time", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    const read = () => call(base, "GET", `/v1/signing-requests/${id}/document`);
    expect(codeOf(await read())).toBe("invalid_state");
    base.advance(id, "completed");
    const sealed = await read();
    expect([sealed.text.slice(0, 5), sealed.text.slice(-6)]).toEqual(["%PDF-", "%%EOF\n"]);
    expect((await read()).text).toBe(sealed.text);
  });

  it("expires a request whose time is over", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    const id = idOf(await send(base, undefined, { expires_in_days: "1" }));
    base.advanceClock(86_400_000);
    expect((await call(base, "GET", `/v1/signing-requests/${id}`)).json.status).toBe("expired");
    await base.waitIdle();
    expect(hook.types().sort()).toEqual(["signing_request.expired", "signing_request.sent"]);
  });

  it("refuses new requests beyond its bound rather than forget counted ones", async () => {
    const base = await simulator({ maxRequests: 1 });
    await send(base);
    const refused = await send(base);
    expect([refused.status, codeOf(refused)]).toEqual([503, "capacity"]);
    expect(base.audit().totals.requests).toBe(1);
  });
});

describe("life", () => {
  it("lets recipients view, sign and complete, or decline, by seed", async () => {
    const run = async (seed: string) => {
      const base = await simulator({ seed, life: { enabled: true, completeRate: 0.5, declineRate: 0.3, stepMs: 2 } });
      for (let n = 0; n < 12; n += 1) await send(base, undefined, operation(`op-${n}`));
      await base.waitIdle();
      return base.audit().operations.map(({ requests }) => requests[0]?.status);
    };
    const ends = await run("s");
    expect(new Set(ends)).toEqual(new Set(["completed", "declined", "viewed"]));
    expect(await run("s")).toEqual(ends);
  });

  it("ends with a withdrawal", async () => {
    const base = await simulator({ life: { enabled: true, completeRate: 1, declineRate: 0, stepMs: 50 } });
    const id = idOf(await send(base, undefined, operation("op-1")));
    await call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
    await base.waitIdle();
    expect(base.audit().operations).toMatchObject([{ requests: [{ id, status: "withdrawn" }], withdrawals: 1 }]);
  });

  it("is advanced by hand over the control endpoint", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    const advance = (status: string) =>
      call(base, "POST", `/_control/requests/${id}/advance`, { body: JSON.stringify({ status }) });
    expect((await advance("signed")).json).toMatchObject({ status: "signed", signers: [{ status: "signed" }] });
    expect((await advance("completed")).status).toBe(200);
    expect((await advance("declined")).status).toBe(409);
    expect((await advance("nonsense")).status).toBe(422);
  });
});

describe("the audit", () => {
  it("counts per tenant and operation what arrived and what came of it; sandbox requests stay outside", async () => {
    const base = await simulator();
    const id = idOf(await send(base, "k1", operation("op-1")));
    await send(base, "k1", operation("op-1"));
    await send(base, "k1", { ...operation("op-1"), locale: "de" });
    await send(base, undefined, operation("op-1", "other"));
    await call(base, "POST", `/v1/signing-requests/${id}/remind`);
    await call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
    await send(base);
    await send(base, undefined, { metadata: '{"sandbox":"true","operation_id":"probe"}' });
    const { json } = await call(base, "GET", "/audit", { token: "none" });
    expect(json).toMatchObject({
      totals: { requests: 3, mails: 4, reminders: 1, withdrawals: 1, arrivals: 5 },
      operations: [
        {
          tenant: "acme",
          operationId: "op-1",
          requests: [{ id, status: "withdrawn" }],
          mails: 2,
          withdrawals: 1,
          arrivals: 3,
          calls: { send: 3, remind: 1, withdraw: 1 },
        },
        { tenant: "other", operationId: "op-1", arrivals: 1, withdrawals: 0 },
      ],
      untagged: { requests: 1, arrivals: 1 },
      sandbox: { requests: 1, arrivals: 1 },
    });
  });
});

describe("the control endpoints", () => {
  const control = (base: Awaited<ReturnType<typeof simulator>>, path: string, body: unknown) =>
    call(base, "POST", `/_control/${path}`, { body: JSON.stringify(body) });

  it("script faults, change the configuration and move the clock", async () => {
    const base = await simulator();
    expect((await control(base, "faults", { kind: "5xx-before-commit" })).json.scripted).toBe(1);
    expect((await send(base)).status).toBe(500);
    await control(base, "config", { mode: "poor", faults: { errorStatus: 502, rates: { "5xx-before-commit": 1 } } });
    expect((await send(base)).status).toBe(502);
    await control(base, "config", { faults: { rates: {} }, workspaces: [{ name: "late", keys: ["wsk_late"] }] });
    expect((await call(base, "GET", "/v1/signing-requests/x", { token: "wsk_late" })).status).toBe(404);
    const { json } = await control(base, "clock", { advanceMs: 86_400_000 });
    expect(Date.parse(String(json.now))).toBeGreaterThan(Date.now() + 86_000_000);
    expect((await call(base, "GET", "/_control/idle")).json).toEqual({ idle: true });
  });

  it("refuse what they do not know, and change nothing", async () => {
    const base = await simulator();
    const before = base.config();
    expect((await control(base, "config", { latencyMs: 5, mod: "poor" })).status).toBe(422);
    expect((await control(base, "config", { latencyMs: -1 })).status).toBe(422);
    expect((await control(base, "faults", [{ kind: "no-such-fault" }])).status).toBe(422);
    expect(base.config()).toEqual(before);
  });

  it("a bad option stops the start and names itself", async () => {
    await expect(startSimulator(JSON.parse('{"lookuplag":1}'))).rejects.toThrow(SimulatorConfigError);
    await expect(startSimulator(JSON.parse('{"lookuplag":1}'))).rejects.toThrow(/lookuplag/);
  });
});
