import { createHmac } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { call, codeOf, idOf, operation, receiver, send, simulator, withHook } from "./test-support.js";
import { ATTEMPT_DELAYS_MS } from "./webhooks.js";

/** Makes the planned waits of 30 s to 12 h a few milliseconds. */
const QUICK = { timeScale: 1e-7 };

const hooksView = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      enabled: z.boolean(),
      deliveries: z.array(z.object({ eventId: z.string(), attempts: z.number(), state: z.string() })),
    }),
  ),
});

async function hookOf(base: Awaited<ReturnType<typeof simulator>>) {
  const [hook] = hooksView.parse((await call(base, "GET", "/_control/hooks")).json).data;
  if (hook === undefined) throw new Error("no hook");
  return hook;
}

describe("a delivery", () => {
  it("is signed over timestamp, dot and raw body, keyed with the whole secret text", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    await send(base);
    await base.waitIdle();
    const [delivery] = hook.received;
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(delivery?.headers["elchi-signature"])) ?? [];
    expect(Math.abs(Number(t) - Date.now() / 1_000)).toBeLessThan(300);
    expect(v1).toBe(createHmac("sha256", "whsec_test").update(`${t}.${delivery?.raw}`).digest("hex"));
    expect(delivery?.headers["elchi-event-id"]).toBe(delivery?.id);
  });

  it("carries ids and little else, and the metadata only in a document's first event", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    const made = await send(base, undefined, operation("op-1"));
    base.advance(idOf(made), "viewed");
    await base.waitIdle();
    const data = { signing_request_id: made.json.id, document_id: made.json.document_id };
    const byType = Object.fromEntries(hook.received.map((delivery) => [delivery.type, delivery.data]));
    expect(byType).toEqual({
      "signing_request.sent": { ...data, status: "sent", metadata: { tenant: "acme", operation_id: "op-1" } },
      "signing_request.viewed": { ...data, status: "viewed" },
    });
  });

  it("goes to every hook of its workspace and to the request's callback, not to other workspaces", async () => {
    const [own, other, callback] = [await receiver(), await receiver(), await receiver()];
    const base = await simulator({
      workspaces: [
        { name: "one", keys: ["wsk_test"], hooks: [{ url: own.url, secret: "whsec_1" }] },
        { name: "two", keys: ["wsk_two"], hooks: [{ url: other.url, secret: "whsec_2" }] },
      ],
    });
    const made = await send(base, undefined, { callback_url: callback.url });
    await base.waitIdle();
    expect([own.received.length, other.received.length, callback.received.length]).toEqual([1, 0, 1]);
    const { secret } = z.object({ secret: z.string() }).parse(made.json.callback);
    const [delivery] = callback.received;
    const t = /^t=(\d+)/.exec(String(delivery?.headers["elchi-signature"]))?.[1];
    const mac = createHmac("sha256", secret).update(`${t}.${delivery?.raw}`).digest("hex");
    expect(delivery?.headers["elchi-signature"]).toBe(`t=${t},v1=${mac}`);
  });
});

describe("a delivery that fails", () => {
  it("gets eight attempts with the same id and body, then is abandoned", async () => {
    const hook = await receiver(() => 500);
    const base = await simulator(withHook(hook.url, { webhooks: QUICK }));
    await send(base);
    await base.waitIdle();
    expect(hook.received).toHaveLength(8);
    expect(new Set(hook.received.map(({ raw }) => raw)).size).toBe(1);
    expect((await hookOf(base)).deliveries).toMatchObject([{ attempts: 8, state: "abandoned" }]);
  });

  it("waits 0 s, 30 s, 2, 10 and 30 min, 2, 6 and 12 h: about 21 hours", () => {
    expect(ATTEMPT_DELAYS_MS.map((ms) => ms / 1_000)).toEqual([0, 30, 120, 600, 1_800, 7_200, 21_600, 43_200]);
    expect(Math.round(ATTEMPT_DELAYS_MS.reduce((sum, ms) => sum + ms, 0) / 3_600_000)).toBe(21);
  });

  it("ends at the first 2xx", async () => {
    let attempts = 0;
    const hook = await receiver(() => (++attempts < 3 ? 503 : 204));
    const base = await simulator(withHook(hook.url, { webhooks: QUICK }));
    await send(base);
    await base.waitIdle();
    expect(attempts).toBe(3);
    expect((await hookOf(base)).deliveries).toMatchObject([{ state: "delivered" }]);
  });

  it("counts an answer after the timeout, and a redirect, as failures; a redirect is not followed", async () => {
    let attempts = 0;
    const hook = await receiver(() => (["silence", 307, 200] as const)[attempts++] ?? 200);
    const base = await simulator(withHook(hook.url, { webhooks: { ...QUICK, timeoutMs: 100 } }));
    await send(base);
    await base.waitIdle();
    expect(hook.received).toHaveLength(3);
    expect((await hookOf(base)).deliveries).toMatchObject([{ attempts: 3, state: "delivered" }]);
  });

  it("turns the hook off after 25 failures in a row over all its events; then nothing is queued for it", async () => {
    const hook = await receiver(() => 500);
    const base = await simulator(withHook(hook.url, { webhooks: QUICK }));
    for (let n = 0; n < 4; n += 1) await send(base);
    await base.waitIdle();
    expect((await hookOf(base)).enabled).toBe(false);
    const failed = hook.received.length;
    expect(failed).toBeGreaterThanOrEqual(25);
    // Attempts that were already on their way when the 25th failed still arrive.
    expect(failed).toBeLessThanOrEqual(28);
    await send(base);
    await base.waitIdle();
    expect(hook.received).toHaveLength(failed);
  });

  it("resumes what was waiting when the hook is turned on; what happened meanwhile is gone", async () => {
    let up = false;
    const hook = await receiver(() => (up ? 200 : 500));
    const base = await simulator(withHook(hook.url, { webhooks: { ...QUICK, disableAfter: 3 } }));
    const waiting = idOf(await send(base));
    await base.waitIdle();
    const lost = idOf(await send(base));
    up = true;
    const { id } = await hookOf(base);
    await call(base, "POST", `/_control/hooks/${id}/enable`);
    await base.waitIdle();
    const seen = hook.received.map(({ data }) => data.signing_request_id);
    expect(seen.at(-1)).toBe(waiting);
    expect(seen).not.toContain(lost);
  });

  it("can be sent again by hand, with its id", async () => {
    let up = false;
    const hook = await receiver(() => (up ? 200 : 500));
    const base = await simulator(withHook(hook.url, { webhooks: QUICK }));
    await send(base);
    await base.waitIdle();
    up = true;
    const { id, deliveries } = await hookOf(base);
    const body = JSON.stringify({ eventId: deliveries[0]?.eventId });
    expect((await call(base, "POST", `/_control/hooks/${id}/resend`, { body })).status).toBe(200);
    await base.waitIdle();
    expect(hook.received.at(-1)?.id).toBe(hook.received[0]?.id);
    expect((await hookOf(base)).deliveries).toMatchObject([{ state: "delivered" }]);
  });
});

describe("a fault of an event", () => {
  it("webhook-duplicate: delivered twice with the same id", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    base.script({ kind: "webhook-duplicate" });
    await send(base);
    await base.waitIdle();
    expect(hook.received.map(({ id }) => id)).toEqual([hook.received[0]?.id, hook.received[0]?.id]);
  });

  it("webhook-drop: never delivered", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    base.script({ kind: "webhook-drop", eventType: "signing_request.viewed" });
    const id = idOf(await send(base));
    base.advance(id, "viewed");
    base.advance(id, "completed");
    await base.waitIdle();
    expect(hook.types().sort()).toEqual(["signing_request.completed", "signing_request.sent"]);
  });

  it("webhook-out-of-order: arrives after the next event of its request", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    base.script({ kind: "webhook-out-of-order", delayMs: 60_000 });
    base.advance(idOf(await send(base)), "viewed");
    await base.waitIdle();
    expect(hook.types()).toEqual(["signing_request.viewed", "signing_request.sent"]);
  });

  it("webhook-delay: arrives later", async () => {
    const hook = await receiver();
    const base = await simulator(withHook(hook.url));
    base.script({ kind: "webhook-delay", delayMs: 150, operationId: "op-1" });
    await send(base, undefined, operation("op-1"));
    await send(base, undefined, operation("op-2"));
    await vi.waitFor(() => expect(hook.received).toHaveLength(1));
    await base.waitIdle();
    expect(hook.received.map(({ data }) => data.metadata)).toMatchObject([
      { operation_id: "op-2" },
      { operation_id: "op-1" },
    ]);
  });
});

describe("a hook", () => {
  const register = (base: Awaited<ReturnType<typeof simulator>>, url: string) =>
    call(base, "POST", "/v1/hooks", { body: JSON.stringify({ url }) });

  it("must have an https URL with a host, no credentials and no reserved address", async () => {
    const base = await simulator();
    for (const url of [
      "http://hooks.example.com/in",
      "https://user:pass@hooks.example.com/in",
      "https://10.0.0.1/in",
      "https://192.168.1.1/in",
      "https://169.254.169.254/in",
      "https://[fd00::1]/in",
      "ftp://hooks.example.com/in",
      "not a url",
    ]) {
      expect(codeOf(await register(base, url)), url).toBe("invalid_url");
    }
    expect((await register(base, "https://hooks.example.com/in")).status).toBe(201);
  });

  it("may be on a loopback address only while that is allowed", async () => {
    const strict = await simulator({ webhooks: { allowLoopback: false } });
    for (const url of ["https://localhost/in", "http://127.0.0.1:1/in", "https://[::1]/in"]) {
      expect(codeOf(await register(strict, url)), url).toBe("invalid_url");
    }
  });

  it("is checked again at each connection: a name that points inside is not dialled", async () => {
    const hook = await receiver();
    const url = hook.url.replace("127.0.0.1", "localhost");
    const base = await simulator(withHook(url, { webhooks: { ...QUICK, disableAfter: 1 } }));
    base.configure({ webhooks: { allowLoopback: false } });
    await send(base);
    await base.waitIdle();
    expect(hook.received).toHaveLength(0);
    expect((await hookOf(base)).enabled).toBe(false);
  });

  it("signs with its new secret after a rotation, and gets nothing after its removal", async () => {
    const hook = await receiver();
    const base = await simulator();
    const made = await register(base, hook.url);
    const rotated = await call(base, "POST", `/v1/hooks/${idOf(made)}/rotate`);
    await send(base);
    await base.waitIdle();
    const [delivery] = hook.received;
    const t = /^t=(\d+)/.exec(String(delivery?.headers["elchi-signature"]))?.[1];
    const mac = createHmac("sha256", String(rotated.json.secret)).update(`${t}.${delivery?.raw}`).digest("hex");
    expect(delivery?.headers["elchi-signature"]).toBe(`t=${t},v1=${mac}`);
    expect((await call(base, "DELETE", `/v1/hooks/${idOf(made)}`)).status).toBe(204);
    await send(base);
    await base.waitIdle();
    expect(hook.received).toHaveLength(1);
  });
});
