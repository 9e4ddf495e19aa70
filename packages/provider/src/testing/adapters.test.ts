import { afterEach, describe, expect, it } from "vitest";
import { HttpTransport } from "../http-call.js";
import type { ActionCapability, Observation, SignatureProvider } from "../port.js";
import { weSignCapabilities } from "../wesign/capabilities.js";
import { BareProvider, OddCodesProvider, PolledProvider, SafeKeyProvider } from "./index.js";
import { callContext, ids, payloadOf, prepared } from "./requests.js";
import { closeServers, httpServer } from "./servers.js";

const transport = new HttpTransport({ keepAliveMs: 100 });
const bare = new BareProvider(transport);
const oddCodes = new OddCodesProvider(transport);
const safeKey = new SafeKeyProvider(transport);
const polled = new PolledProvider(transport);
afterEach(closeServers);

/** Answers everything alike; keeps method, path and key. */
async function answering(status: number, body: object, headers: Record<string, string> = {}) {
  const arrivals: [line: string, key: string | undefined][] = [];
  const { baseUrl } = await httpServer((request, response) => {
    const key = request.headers["idempotency-key"];
    arrivals.push([`${request.method} ${request.url}`, typeof key === "string" ? key : undefined]);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  });
  return { arrivals, baseUrl };
}

const error = (code: string) => ({ error: { code, message: "x" } });
const sendOf = (provider: SignatureProvider) => prepared(provider.prepare("SEND", payloadOf(), ids));
const onTarget = (provider: SignatureProvider, action: "VOID" | "RESEND") =>
  prepared(provider.prepare(action, { schemaVersion: 1 }, ids));

async function observe(provider: SignatureProvider, status: number, body: object): Promise<Observation> {
  const { baseUrl } = await answering(status, body);
  return await provider.submit("SEND", sendOf(provider), callContext(baseUrl).call);
}

describe("what an answer means is the adapter's own", () => {
  const created = { id: "sr_1", status: "sent" };
  // biome-ignore format: aligned, so that the last column can be read down
  it.each<[SignatureProvider, number, object, string]>([
    [bare,     201, created,                            "accepted"],
    [bare,     202, created,                            "queued"],
    [bare,     422, error("invalid_signers"),           "refused"],
    [bare,     404, error("address_mismatch"),          "ambiguous"],
    [bare,     429, error("rate_limited"),              "declined"],
    [bare,     409, error("idempotency_in_progress"),   "ambiguous"],
    [bare,     422, error("idempotency_key_reuse"),     "ambiguous"],
    [bare,     503, error("unavailable"),               "ambiguous"],
    [oddCodes, 201, created,                            "accepted"],
    [oddCodes, 404, error("address_mismatch"),          "refused"],
    [oddCodes, 404, error("not_found"),                 "ambiguous"],
    [oddCodes, 404, {},                                 "ambiguous"],
    [oddCodes, 408, error("daily_limit"),               "declined"],
    [oddCodes, 408, error("timeout"),                   "ambiguous"],
    [oddCodes, 429, error("rate_limited"),              "ambiguous"],
    [safeKey,  201, created,                            "accepted"],
    [safeKey,  409, error("idempotency_in_progress"),   "ambiguous"],
    [safeKey,  422, error("idempotency_key_reuse"),     "conflict"],
    [safeKey,  429, error("rate_limited"),              "declined"],
    [polled,   201, created,                            "accepted"],
    [polled,   422, error("idempotency_key_reuse"),     "conflict"],
  ])("$name: %i %j", async (provider, status, body, kind) => {
    expect(await observe(provider, status, body)).toMatchObject({ kind });
  });

  it("a daily limit is a quota, not a time-out", async () => {
    expect(await observe(oddCodes, 408, error("daily_limit"))).toMatchObject({ kind: "declined", reason: "quota" });
  });
});

it("only a keyed provider is sent a key, and its replay is told apart", async () => {
  const { arrivals, baseUrl } = await answering(201, { id: "sr_1" }, { "idempotent-replayed": "true" });
  const { call } = callContext(baseUrl, { providerKey: "key-1" });
  for (const provider of [bare, oddCodes]) await provider.submit("SEND", sendOf(provider), call);
  expect(await safeKey.submit("SEND", sendOf(safeKey), call)).toMatchObject({ kind: "accepted", replayed: true });
  expect(arrivals.map(([, key]) => key)).toEqual([undefined, undefined, "key-1"]);
});

describe.each([bare, oddCodes, safeKey])("$name", (provider) => {
  it("voids and resends by the target's reference; the record of a void is its proof", async () => {
    const { arrivals, baseUrl } = await answering(200, { id: "sr_1", status: "withdrawn" });
    const { call } = callContext(baseUrl, { targetRef: "sr_1" });
    expect(await provider.submit("VOID", onTarget(provider, "VOID"), call)).toMatchObject({
      kind: "accepted",
      recordStatus: "withdrawn",
    });
    expect(provider.capabilities.VOID.answerIsAuthoritative).toBe(true);
    await provider.submit("RESEND", onTarget(provider, "RESEND"), call);
    expect(arrivals.map(([line]) => line)).toEqual([
      "POST /v1/signing-requests/sr_1/withdraw",
      "POST /v1/signing-requests/sr_1/remind",
    ]);
  });

  it.each([
    [409, "invalid_state"],
    [404, "not_found"],
  ])("a void answered %i %s is a conflict", async (status, code) => {
    const { baseUrl } = await answering(status, error(code));
    const { call } = callContext(baseUrl, { targetRef: "sr_1" });
    expect(await provider.submit("VOID", onTarget(provider, "VOID"), call)).toMatchObject({ kind: "conflict", code });
  });

  it("refuses templates and FINALIZE by name, and never calls for them", async () => {
    const template = payloadOf({ documents: [], template: { id: "tpl_1" } });
    expect(provider.prepare("SEND", template, ids)).toMatchObject({ refused: true, field: "template" });
    expect(provider.prepare("FINALIZE", { schemaVersion: 1 }, ids)).toMatchObject({ refused: true, field: "action" });
    const { arrivals, baseUrl } = await answering(200, { id: "sr_1" });
    const { call } = callContext(baseUrl, { targetRef: "sr_1" });
    expect(await provider.submit("FINALIZE", onTarget(provider, "VOID"), call)).toMatchObject({ kind: "not-sent" });
    expect(arrivals).toEqual([]);
  });

  it("looks up what its record says, and nothing else", async () => {
    const { arrivals, baseUrl } = await answering(200, { id: "sr_1", status: "sent", metadata: {} });
    const call = { baseUrl, credential: "x", deadlineMs: 5_000 };
    const byReference = await provider.lookup({ by: "reference", ref: "sr_1" }, call);
    const byMetadata = await provider.lookup({ by: "metadata", ...ids }, call);
    expect(byReference.kind).toBe(provider.capabilities.SEND.lookup.byReference ? "found" : "failed");
    expect(byMetadata).toMatchObject({ kind: "failed", cause: "no-lookup" });
    expect(arrivals).toHaveLength(provider === oddCodes ? 1 : 0);
  });
});

it("polled has a documented lookup with a retention and a poll budget, and settles many by one list", async () => {
  const metadata = { operation_id: ids.operationId, tenant: ids.tenantId };
  const list = { data: [{ id: "sr_1", status: "sent", metadata }], has_more: false, next_cursor: null };
  const { baseUrl } = await answering(200, list);
  const call = { baseUrl, credential: "x", deadlineMs: 5_000 };
  expect(polled.capabilities.SEND.lookup).toMatchObject({
    many: true,
    documented: true,
    minIntervalMs: 200,
    retentionMs: 60_000,
  });
  const { tenantId, operationId } = ids;
  const found = await polled.lookupMany({ tenantId, operationIds: [operationId], createdAfter: new Date(0) }, call);
  expect(found.kind === "found" && found.matches.get(operationId)).toMatchObject([{ ref: "sr_1" }]);
});

describe("the capability records", () => {
  const records = [
    ["wesign", weSignCapabilities],
    ...[bare, oddCodes, safeKey, polled].map(({ name, capabilities }) => [name, capabilities] as const),
  ] as const;

  it.each(records)("of %s name a reference and its date, and list each allow-listed answer once", (_name, record) => {
    for (const capability of Object.values<ActionCapability>(record)) {
      expect(capability.reference.source).not.toBe("");
      expect(capability.reference.checkedOn).toMatch(/^\d{4}-\d{2}-\d{2}$/);
      expect(capability.lookup.many).toBe(capability.lookup.byMetadata);
      const answers = (capability.answers ?? []).map((answer) => JSON.stringify(answer));
      expect(new Set(answers).size).toBe(answers.length);
      expect(answers.length > 0).toBe(capability.supported);
    }
  });

  it("say what is documented of WeSign and what is assumed", () => {
    const of = (action: "SEND" | "VOID", code: string) =>
      weSignCapabilities[action].answers?.filter((answer) => answer.code === code);
    expect(of("SEND", "idempotency_key_reuse")).toEqual([
      { status: 422, code: "idempotency_key_reuse", means: "conflict", assumed: false },
    ]);
    expect(of("VOID", "invalid_state")).toMatchObject([{ assumed: false }, { assumed: true }]);
    expect(of("VOID", "not_found")).toMatchObject([{ assumed: true }, { assumed: false }]);
  });

  it("name the risk of a replay that isn't safe", () => {
    expect(weSignCapabilities.SEND.idempotency).toMatchObject({
      replaySafe: false,
      replayRisk: "error-may-release-a-committed-request",
    });
    expect(safeKey.capabilities.SEND.idempotency).toMatchObject({ kind: "keyed", replaySafe: true });
  });
});
