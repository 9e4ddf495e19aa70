import { createServer } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { plainPdf } from "./sealed-document.js";
import {
  call,
  codeOf,
  INSTANCE,
  idOf,
  instantiate,
  listen,
  operation,
  receiver,
  STAGED,
  send,
  sendForm,
  simulator,
  withHook,
} from "./test-support.js";

const DAY_MS = 86_400_000;

describe("a key on POST /v1/signing-requests", () => {
  it("replays the first answer: same JSON, same status, Idempotent-Replayed and RateLimit-* headers", async () => {
    const base = await simulator();
    const first = await send(base, "k1");
    const second = await send(base, "k1");
    expect(first.status).toBe(201);
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    expect([second.status, second.text]).toEqual([201, first.text]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    for (const name of ["limit", "remaining", "reset"])
      expect(second.headers.get(`ratelimit-${name}`)).toMatch(/^\d+$/);
  });

  it("covers the whole send: a replay makes no document, mail or event", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    await send(base, "k1", operation("op-1"));
    await send(base, "k1", operation("op-1"));
    await base.waitIdle();
    expect(base.audit().totals).toMatchObject({ requests: 1, mails: 1, arrivals: 2 });
    expect(hook.types()).toEqual(["signing_request.sent"]);
  });

  it("replays the callback's secret", async () => {
    const hook = await receiver();
    const base = await simulator();
    const first = await send(base, "k1", { callback_url: hook.url });
    const second = await send(base, "k1", { callback_url: hook.url });
    expect(first.json.callback).toMatchObject({ url: hook.url, secret: expect.stringMatching(/^whsec_/) });
    expect(second.json.callback).toEqual(first.json.callback);
  });

  it("without a key sends twice", async () => {
    const base = await simulator();
    await send(base);
    await send(base);
    expect(base.audit().totals.requests).toBe(2);
  });

  it.each([
    ["signers", '[{"email":"other@example.com","role":"customer"}]'],
    ["placement", '{"page":1}'],
    ["fields", '{"a":"b"}'],
    ["observer_emails", '["observer@example.com"]'],
    ["callback_url", "http://127.0.0.1:9/hook"],
    ["signing_mode", "parallel"],
    ["locale", "de"],
    ["expires_in_days", "7"],
    ["placement_assignee_email", "assignee@example.com"],
    ["filename", "renamed.pdf"],
    ["metadata", '{"a":"b"}'],
    ["send_emails", "false"],
  ])("hashes %s", async (name, value) => {
    const base = await simulator();
    expect((await send(base, "k1")).status).toBe(201);
    expect(codeOf(await send(base, "k1", { [name]: value }))).toBe("idempotency_key_reuse");
    expect((await send(base, "k2", { [name]: value })).status).toBe(201);
  });

  it("hashes the PDF's bytes and the multipart filename", async () => {
    const base = await simulator();
    await send(base, "k1");
    const post = (body: FormData) => call(base, "POST", "/v1/signing-requests", { key: "k1", body });
    expect(codeOf(await post(sendForm({}, "another text")))).toBe("idempotency_key_reuse");
    expect(codeOf(await post(sendForm({}, "contract", "other.pdf")))).toBe("idempotency_key_reuse");
    expect((await post(sendForm())).headers.get("idempotent-replayed")).toBe("true");
  });

  it("does not hash unknown top-level keys", async () => {
    const base = await simulator();
    await send(base, "k1");
    expect((await send(base, "k1", { unknown: "x" })).headers.get("idempotent-replayed")).toBe("true");
  });

  it("hashes the bytes behind file_url: a replay fetches it again first", async () => {
    let fetches = 0;
    let text = "first";
    const server = createServer((_request, response) => {
      fetches += 1;
      response.end(plainPdf([text]));
    });
    const file_url = `${await listen(server)}/contract.pdf`;
    const base = await simulator();
    const first = await send(base, "k1", { file: null, file_url });
    const second = await send(base, "k1", { file: null, file_url });
    expect([first.status, second.headers.get("idempotent-replayed"), fetches]).toEqual([201, "true", 2]);
    text = "second";
    expect(codeOf(await send(base, "k1", { file: null, file_url }))).toBe("idempotency_key_reuse");
  });
});

describe("a key on POST /v1/templates/{id}/instantiate", () => {
  it.each([
    ["the direct 200", INSTANCE, 200],
    ["the staged 201", STAGED, 201],
  ])("replays %s", async (_name, body, status) => {
    const base = await simulator();
    const first = await instantiate(base, body, "k1");
    const second = await instantiate(base, body, "k1");
    expect([first.status, second.status, second.text]).toEqual([status, status, first.text]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    const { requests, drafts } = base.audit().totals;
    expect(requests + drafts).toBe(1);
  });

  it("is never read by a validate_only dry run, which is never cached", async () => {
    const base = await simulator();
    const dryRun = INSTANCE.replace("{", '{"validate_only":true,');
    const first = await instantiate(base, dryRun, "k".repeat(256));
    expect(first.status).toBe(200);
    await instantiate(base, dryRun, "k1");
    expect((await instantiate(base, dryRun, "k1")).headers.get("idempotent-replayed")).toBeNull();
    expect((await instantiate(base, INSTANCE, "k1")).headers.get("idempotent-replayed")).toBeNull();
    expect((await instantiate(base, dryRun, "k1")).status).toBe(200);
    expect(base.audit().totals.requests).toBe(1);
  });

  it("hashes the JSON exactly as sent, key order included", async () => {
    const base = await simulator();
    await instantiate(base, INSTANCE, "k1");
    const { signers, fields } = JSON.parse(INSTANCE);
    expect(codeOf(await instantiate(base, JSON.stringify({ fields, signers }), "k1"))).toBe("idempotency_key_reuse");
    expect(codeOf(await instantiate(base, `${INSTANCE} `, "k1"))).toBe("idempotency_key_reuse");
  });

  it("replays the first template's answer for another template: the URL is not hashed", async () => {
    const base = await simulator();
    const first = await instantiate(base, INSTANCE, "k1", "tpl_contract");
    const second = await instantiate(base, INSTANCE, "k1", "tpl_amendment");
    expect(second.text).toBe(first.text);
  });
});

describe("a key's scope", () => {
  const workspaces = [
    { name: "one", keys: ["wsk_a", "wsk_b"] },
    { name: "two", keys: ["wsk_c"] },
  ];

  it("is the workspace: its other bearer keys share it, another workspace does not", async () => {
    const base = await simulator({ workspaces });
    const post = (token: string) => call(base, "POST", "/v1/signing-requests", { token, key: "k1", body: sendForm() });
    const first = await post("wsk_a");
    expect((await post("wsk_b")).text).toBe(first.text);
    expect((await post("wsk_c")).headers.get("idempotent-replayed")).toBeNull();
  });

  it("goes across endpoints", async () => {
    const base = await simulator();
    await send(base, "k1");
    expect(codeOf(await instantiate(base, INSTANCE, "k1"))).toBe("idempotency_key_reuse");
  });
});

describe("a key while its first call runs", () => {
  it("answers 409 with the seconds until the lock is stale, at most 60, then replays", async () => {
    const base = await simulator({ latencyMs: 400 });
    const first = send(base, "k1");
    await vi.waitFor(() => expect(base.audit().totals.arrivals).toBe(1));
    const second = await send(base, "k1");
    expect([second.status, codeOf(second)]).toEqual([409, "idempotency_in_progress"]);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThanOrEqual(59);
    expect(Number(second.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    const answered = await first;
    expect((await send(base, "k1")).text).toBe(answered.text);
    expect(base.audit().totals.requests).toBe(1);
  });

  it("counts Retry-After down", async () => {
    const base = await simulator();
    base.script({ kind: "crash-before-commit" });
    await expect(send(base, "k1")).rejects.toThrow();
    base.advanceClock(50_000);
    expect(Number((await send(base, "k1")).headers.get("retry-after"))).toBeLessThanOrEqual(10);
  });

  it("compares the hash first: another body is 422 even then", async () => {
    const base = await simulator();
    base.script({ kind: "crash-before-commit" });
    await expect(send(base, "k1")).rejects.toThrow();
    const other = await send(base, "k1", { locale: "de" });
    expect([other.status, codeOf(other)]).toEqual([422, "idempotency_key_reuse"]);
  });

  it("is taken over once the lock is 60 s old, not before", async () => {
    const base = await simulator();
    base.script({ kind: "crash-before-commit" });
    await expect(send(base, "k1")).rejects.toThrow();
    base.advanceClock(58_000);
    expect((await send(base, "k1")).status).toBe(409);
    base.advanceClock(2_000);
    const taken = await send(base, "k1");
    expect([taken.status, taken.headers.get("idempotent-replayed")]).toEqual([201, null]);
    expect((await send(base, "k1")).text).toBe(taken.text);
    expect(base.audit().totals.requests).toBe(1);
  });

  it("cannot tell a crashed call from a slow one: after the takeover both run", async () => {
    const base = await simulator();
    base.script({ kind: "late-commit", delayMs: 300 });
    await expect(send(base, "k1")).rejects.toThrow();
    base.advanceClock(60_000);
    const taken = await send(base, "k1");
    await base.waitIdle();
    expect(base.audit().totals.requests).toBe(2);
    expect((await send(base, "k1")).text).toBe(taken.text);
  });
});

describe("an error", () => {
  it("releases the key: a corrected retry with the same key runs fresh", async () => {
    const base = await simulator();
    expect(codeOf(await send(base, "k1", { signers: "[]" }))).toBe("invalid_signers");
    const corrected = await send(base, "k1");
    expect([corrected.status, corrected.headers.get("idempotent-replayed")]).toEqual([201, null]);
  });

  it.each(["5xx-before-commit", "5xx-after-commit"] as const)(
    "of the server releases the key too (%s)",
    async (kind) => {
      const base = await simulator();
      base.script({ kind });
      expect((await send(base, "k1")).status).toBe(500);
      const retry = await send(base, "k1");
      expect([retry.status, retry.headers.get("idempotent-replayed")]).toEqual([201, null]);
      expect(base.audit().totals.requests).toBe(kind === "5xx-after-commit" ? 2 : 1);
    },
  );
});

describe("a key's format and lifetime", () => {
  it("takes up to 255 printable ASCII characters", async () => {
    const base = await simulator();
    expect((await send(base, `a ~${"k".repeat(252)}`)).status).toBe(201);
    for (const key of ["k".repeat(256), "schlüssel", "a\tb"]) {
      const refused = await send(base, key);
      expect([refused.status, codeOf(refused)]).toEqual([400, "invalid_idempotency_key"]);
    }
  });

  it("lives for 24 hours from the first call; after that a retry makes a second document", async () => {
    const base = await simulator();
    await send(base, "k1");
    base.advanceClock(DAY_MS - 5_000);
    expect((await send(base, "k1")).headers.get("idempotent-replayed")).toBe("true");
    base.advanceClock(5_000);
    expect((await send(base, "k1")).headers.get("idempotent-replayed")).toBeNull();
    expect(base.audit().totals.requests).toBe(2);
  });

  it("scales: 24 h and 60 s shrink with timeScale, or are given outright", async () => {
    const scaled = await simulator({ timeScale: 0.5, staleLockMs: 1_000 });
    scaled.script({ kind: "crash-before-commit" });
    await expect(send(scaled, "k1")).rejects.toThrow();
    scaled.advanceClock(1_000);
    expect((await send(scaled, "k1")).status).toBe(201);
    scaled.advanceClock(DAY_MS / 2);
    expect((await send(scaled, "k1")).headers.get("idempotent-replayed")).toBeNull();
  });

  it("costs one request of the rate limit on each replay", async () => {
    const base = await simulator({ rateLimit: { limit: 2, windowMs: 60_000 } });
    expect((await send(base, "k1")).headers.get("ratelimit-remaining")).toBe("1");
    expect((await send(base, "k1")).headers.get("ratelimit-remaining")).toBe("0");
    const third = await send(base, "k1");
    expect([third.status, codeOf(third)]).toEqual([429, "rate_limited"]);
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    base.advanceClock(60_000);
    expect((await send(base, "k1")).headers.get("idempotent-replayed")).toBe("true");
  });
});

describe("the endpoints without a key", () => {
  it("ignore the header, whatever is in it", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    const key = "k".repeat(300);
    expect((await call(base, "POST", `/v1/signing-requests/${id}/remind`, { key })).status).toBe(200);
    expect(
      (await call(base, "PATCH", `/v1/signing-requests/${id}`, { key, body: '{"expires_in_days":9}' })).status,
    ).toBe(200);
    expect((await call(base, "GET", `/v1/signing-requests/${id}`, { key })).status).toBe(200);
    expect((await call(base, "POST", `/v1/signing-requests/${id}/withdraw`, { key })).status).toBe(200);
  });

  it("confirm: a second one answers 200 already_confirmed with no recipients, and sends nothing", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    const documentId = String((await instantiate(base, STAGED)).json.document_id);
    const first = await call(base, "POST", `/v1/documents/${documentId}/confirm`);
    expect(first.json).toMatchObject({
      status: "sent",
      recipients: [{ email: "signer@example.com", role: "customer" }],
    });
    const second = await call(base, "POST", `/v1/documents/${documentId}/confirm`);
    expect([second.status, second.json.already_confirmed, second.json.recipients]).toEqual([200, true, []]);
    await base.waitIdle();
    expect(base.audit().totals).toMatchObject({ requests: 1, mails: 1 });
    expect(hook.types().sort()).toEqual(["signing_request.sent", "template_instance.staged"]);
  });

  it("instantiate of a template that stages by itself: 201 staged and nobody mailed, until it is confirmed", async () => {
    const base = await simulator();
    const staged = await instantiate(base, INSTANCE, "k1", "tpl_reviewed");
    expect([staged.status, staged.json.status]).toEqual([201, "staged"]);
    const replay = await instantiate(base, INSTANCE, "k1", "tpl_reviewed");
    expect([replay.text, replay.headers.get("idempotent-replayed")]).toEqual([staged.text, "true"]);
    expect(base.audit().totals).toMatchObject({ requests: 0, drafts: 1, mails: 0 });
    const path = `/v1/documents/${staged.json.document_id}/confirm`;
    base.script({ kind: "lost-response", endpoint: "confirm", reference: idOf(staged) });
    await expect(call(base, "POST", path)).rejects.toThrow();
    expect((await call(base, "POST", path)).json).toMatchObject({ status: "sent", already_confirmed: true });
    expect(base.audit().totals).toMatchObject({ requests: 1, drafts: 0, mails: 1 });
  });

  it("generate: only streams a PDF and stores nothing; with review each call stages another document", async () => {
    const base = await simulator();
    const path = "/v1/templates/tpl_letter/generate";
    const streamed = await call(base, "POST", path, { body: "{}" });
    expect([streamed.headers.get("content-type"), streamed.text.slice(0, 5)]).toEqual(["application/pdf", "%PDF-"]);
    expect(base.audit().totals.drafts).toBe(0);
    await call(base, "POST", path, { key: "k1", body: '{"review":true}' });
    await call(base, "POST", path, { key: "k1", body: '{"review":true}' });
    expect(base.audit().totals.drafts).toBe(2);
  });

  it("PATCH: the same number again answers 200 and changes nothing", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    const patch = () => call(base, "PATCH", `/v1/signing-requests/${id}`, { body: '{"expires_in_days":9}' });
    const first = await patch();
    base.advanceClock(1_000);
    const second = await patch();
    expect([second.status, second.text]).toEqual([200, first.text]);
  });

  it("remind: every accepted call sends another mail", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    for (let n = 0; n < 3; n += 1) await call(base, "POST", `/v1/signing-requests/${id}/remind`, { key: "k1" });
    expect(base.audit().totals).toMatchObject({ mails: 4, reminders: 3 });
  });

  it("withdraw: the second call answers 409 invalid_state and changes nothing", async () => {
    const base = await simulator();
    const id = idOf(await send(base));
    expect((await call(base, "POST", `/v1/signing-requests/${id}/withdraw`)).json.status).toBe("withdrawn");
    const second = await call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
    expect([second.status, codeOf(second)]).toEqual([409, "invalid_state"]);
    expect(base.audit().totals.withdrawals).toBe(1);
  });

  it.each(["completed", "declined", "expired"] as const)(
    "withdraw: 409 invalid_state once it is %s",
    async (status) => {
      const base = await simulator();
      const id = idOf(await send(base));
      base.advance(id, status);
      const refused = await call(base, "POST", `/v1/signing-requests/${id}/withdraw`);
      expect([refused.status, codeOf(refused)]).toEqual([409, "invalid_state"]);
    },
  );

  it("discard: a repeat answers 200 already_discarded for an e-sign instance, 404 for a file-only one", async () => {
    const base = await simulator();
    const esign = String((await instantiate(base, STAGED)).json.document_id);
    const file = String((await instantiate(base, '{"review":true}', undefined, "tpl_letter")).json.document_id);
    const discard = (id: string) => call(base, "POST", `/v1/documents/${id}/discard`);
    expect((await discard(esign)).status).toBe(200);
    expect((await discard(esign)).json.already_discarded).toBe(true);
    expect((await discard(file)).status).toBe(200);
    const repeat = await discard(file);
    expect([repeat.status, codeOf(repeat)]).toEqual([404, "not_found"]);
    expect(base.audit().totals).toMatchObject({ requests: 0, mails: 0 });
  });

  it("hooks, rotation and sign sessions: each call makes a new one", async () => {
    const base = await simulator();
    const body = '{"url":"https://hooks.example.com/in"}';
    const [one, two] = [
      await call(base, "POST", "/v1/hooks", { key: "k1", body }),
      await call(base, "POST", "/v1/hooks", { key: "k1", body }),
    ];
    expect(idOf(one)).not.toBe(idOf(two));
    const rotate = () => call(base, "POST", `/v1/hooks/${idOf(one)}/rotate`, { key: "k1" });
    expect(new Set([one.json.secret, (await rotate()).json.secret, (await rotate()).json.secret]).size).toBe(3);
    const session = JSON.stringify({ signing_request_id: idOf(await send(base)) });
    const open = () => call(base, "POST", "/v1/embedded/sign-sessions", { key: "k1", body: session });
    expect(idOf(await open())).not.toBe(idOf(await open()));
  });
});
