import { createHmac, randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { getInboxEvent, listTickets, openEndpoint, recordApplyFailure, recordDelivery } from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ran, startTestCli, type TestCli } from "./testing.js";

const secret = "whsec_MARKER-SECRET-0123456789abcdef";
const address = "marker@example.com";
let cli: TestCli;
let folder: string;
let endpointId = "";
beforeAll(async () => {
  cli = await startTestCli();
  folder = await mkdtemp(join(tmpdir(), "cs-cli-"));
  await cli.run(["migrate"]);
  for (const id of ["acme", "bravo"]) {
    await cli.run(["tenant", "create", "--id", id, "--owner", "contracts-team"]);
    const line = ["connection", "create", "--tenant", id, "--provider", "wesign", "--base-url", "http://127.0.0.1:9"];
    await cli.run([...line, "--api-key-stdin"], "wsk");
  }
  endpointId = await makeEndpoint();
});
afterAll(async () => {
  await cli.stop();
  await rm(folder, { recursive: true });
});

async function makeEndpoint(more: readonly string[] = [], scheme = "elchi", text = secret): Promise<string> {
  const line = ["webhook-endpoint", "create", "--tenant", "acme", "--scheme", scheme, "--secret-stdin", "--json"];
  const made = await cli.run([...line, ...more], text);
  expect([made.err, made.code]).toEqual(["", 0]);
  return String(made.json().endpointId);
}

/** An event that nobody can interpret, or one that could not be applied. */
async function event(change: { type?: string; dead?: boolean; reference?: string } = {}): Promise<string> {
  const { type = "signing_request.exploded", dead = false, reference = `sr_${randomUUID()}` } = change;
  const id = `evt_${randomUUID()}`;
  const recorded = await recordDelivery(cli.ledger, {
    tenantId: "acme",
    connectionId: "main",
    endpointId,
    providerEventId: id,
    eventType: type,
    providerRef: reference,
    ...(dead ? {} : { quarantine: "unknown-type" }),
    body: Buffer.from(
      JSON.stringify({ id, type, data: { signing_request_id: reference, document_id: "doc_1", note: address } }),
    ),
  });
  if (recorded.kind !== "stored") throw new Error("not stored");
  const row = { tenantId: "acme", inboxId: recorded.inboxId };
  if (dead) await recordApplyFailure(cli.ledger, row, "boom", { maxFailures: 1, backoffMs: 1 });
  return recorded.inboxId;
}
const status = async (inboxId: string) => (await getInboxEvent(cli.ledger, "acme", inboxId))?.status;
const ids = (ran: Ran): unknown[] => {
  const list: unknown = JSON.parse(ran.out);
  return Array.isArray(list) ? list.map((each: { inboxId: string }) => each.inboxId) : [];
};
const noneOf = (ran: Ran, ...markers: string[]): void => {
  for (const marker of markers) expect(`${ran.out}${ran.err}`).not.toContain(marker);
};

describe("inbox list", () => {
  it("shows what stands open, by filter, page after page, the newest first", async () => {
    const [first, second] = [await event({ type: "odd.one" }), await event({ type: "odd.one", dead: true })];
    const line = ["inbox", "list", "--tenant", "acme", "--type", "odd.one", "--json"];
    expect(ids(await cli.run(line))).toEqual([second, first]);
    expect(ids(await cli.run([...line, "--open"]))).toEqual([second, first]);
    expect(ids(await cli.run([...line, "--status", "DEAD"]))).toEqual([second]);
    expect(ids(await cli.run([...line, "--reason", "unknown-type", "--since", "1h"]))).toEqual([first]);
    expect(ids(await cli.run([...line, "--until", "1h"]))).toEqual([]);
    expect(ids(await cli.run([...line, "--limit", "1", "--cursor", second]))).toEqual([first]);
    const table = await cli.run(["inbox", "list", "--tenant", "acme", "--type", "odd.one"]);
    expect(table.out).toContain("unknown-type");
    noneOf(table, address);
    expect((await cli.run(["inbox", "list", "--tenant", "bravo"])).out).toBe("no events");
  });
});

describe("inbox show", () => {
  it("says how it was proven, what it stands at, who owns it and what a replay would do; never its bytes", async () => {
    const inboxId = await event({ dead: true, type: "signing_request.viewed", reference: "sr_unbound" });
    const shown = await cli.run(["inbox", "show", inboxId, "--tenant", "acme"]);
    expect(shown.out).toContain("signing_request.viewed is DEAD (boom).");
    expect(shown.out).toContain("It speaks of sr_unbound: status unknown, bound to no operation.");
    expect(shown.out).toContain("dead-letter, owner contracts-team, due");
    expect(shown.out).toContain("A replay would: wait for its reference, which is bound to nothing.");
    noneOf(shown, address);
    noneOf(await cli.run(["inbox", "show", inboxId, "--tenant", "acme", "--json"]), address);
    expect(await cli.run(["inbox", "show", inboxId, "--tenant", "bravo"])).toMatchObject({ code: 1 });
  });
});

describe("inbox replay", () => {
  it("says first what would happen and changes nothing; then does it once", async () => {
    const [odd, dead] = [await event({ type: "odd.two" }), await event({ type: "odd.two", dead: true })];
    const line = ["inbox", "replay", "--tenant", "acme", "--type", "odd.two"];
    const dry = await cli.run([...line, "--dry-run", "--json"]);
    expect(dry.json()).toMatchObject({ dryRun: true, counts: { quarantined: 2 }, more: false });
    expect((await cli.run([...line, "--dry-run"])).out).toContain("2 quarantined. Nothing is changed yet");
    expect([await status(odd), await status(dead)]).toEqual(["QUARANTINED", "DEAD"]);
    const done = await cli.run([...line, "--who", "u-17", "--json"]);
    expect(done.json()).toMatchObject({ counts: { replayed: 2 }, more: false });
    expect([await status(odd), await status(dead)]).toEqual(["RECEIVED", "RECEIVED"]);
    const again = await cli.run(["inbox", "replay", odd, "--tenant", "acme", "--who", "u-17"]);
    expect([again.code, again.out]).toEqual([
      0,
      `0 events are due again; workers apply them within seconds.\n${odd} not replayed: already-due`,
    ]);
    expect((await getInboxEvent(cli.ledger, "acme", odd))?.replays).toBe(1);
  });

  it.each([
    ["nothing chosen", ["--who", "u-1"], "name events, give a condition"],
    ["everything and something", ["--all", "--type", "x", "--who", "u-1"], "--all takes no events"],
    ["nobody", ["--type", "x"], "--who is needed"],
    ["no event's id", ["evt_1", "--who", "u-1"], "<events> must be the id of an event"],
    ["no such status", ["--status", "LOST", "--who", "u-1"], "--status must be one of RECEIVED"],
    ["no instant", ["--since", "yesterday", "--who", "u-1"], "--since must be how long ago"],
    [
      "no instant of PostgreSQL's",
      ["--until", "2026-01-01T00:00:00+23:00", "--who", "u-1"],
      "--until must be how long ago",
    ],
  ])("refuses %s", async (_name, more, message) => {
    const before = await cli.ledger.sql`SELECT * FROM webhook_inbox ORDER BY inbox_id`;
    const ran = await cli.run(["inbox", "replay", "--tenant", "acme", ...more]);
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(message)]);
    expect(await cli.ledger.sql`SELECT * FROM webhook_inbox ORDER BY inbox_id`).toEqual(before);
  });
});

it("inbox discard keeps who and why, closes the ticket, and is refused once it is settled", async () => {
  const inboxId = await event();
  const line = ["inbox", "discard", inboxId, "--tenant", "acme", "--who", "u-17", "--why"];
  expect(await cli.run([...line, address])).toMatchObject({ code: 1 });
  expect((await cli.run([...line, "a test of the provider's"])).out).toBe("Discarded.");
  expect(await getInboxEvent(cli.ledger, "acme", inboxId)).toMatchObject({
    status: "DISCARDED",
    discardedBy: "u-17",
    discardReason: "a test of the provider's",
  });
  expect(await listTickets(cli.ledger, "acme", 10, { subjectId: inboxId })).toEqual([]);
  const again = await cli.run([...line, "again"]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("this one is DISCARDED")]);
  const shown = await cli.run(["inbox", "show", inboxId, "--tenant", "acme"]);
  expect(shown.out).toContain("by u-17: a test of the provider's");
  expect(shown.out).toContain("change nothing (event-is-settled)");
});

describe("webhook-endpoint", () => {
  it("refuses a secret with which nothing would ever verify, and an unknown scheme, without repeating the secret", async () => {
    const line = ["webhook-endpoint", "create", "--tenant", "acme", "--secret-stdin", "--scheme"];
    const wrong = await cli.run([...line, "standard-webhooks"], "MARKER+not*base64");
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--secret-stdin")]);
    noneOf(wrong, "MARKER");
    const unknown = await cli.run([...line, "pigeon"], secret);
    expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining("use elchi, ")]);
  });

  it("is rotated with an overlap, shows which secret verified last, and retires one at a time or on command", async () => {
    const id = await makeEndpoint();
    const rotated = await cli.run(
      ["webhook-endpoint", "rotate", id, "--tenant", "acme", "--secret-stdin", "--overlap", "2h", "--json"],
      "whsec_MARKER-NEXT-0123456789",
    );
    noneOf(rotated, "MARKER");
    const [old, next] = (await openEndpoint(cli.ledger, id))?.secrets.toReversed() ?? [];
    expect([old?.secret, next?.secret]).toEqual([secret, "whsec_MARKER-NEXT-0123456789"]);
    expect(rotated.json()).toMatchObject({ secretId: next?.secretId });
    const listed = await cli.run(["webhook-endpoint", "list", "--tenant", "acme"]);
    expect(listed.out).toContain("active until 20");
    noneOf(listed, "MARKER");
    const retire = ["webhook-endpoint", "retire", id, "--tenant", "acme", "--secret"];
    expect((await cli.run([...retire, String(old?.secretId)])).code).toBe(0);
    expect((await openEndpoint(cli.ledger, id))?.secrets.map((each) => each.secretId)).toEqual([next?.secretId]);
    const last = await cli.run([...retire, String(next?.secretId)]);
    expect([last.code, last.err]).toEqual([1, expect.stringContaining("disable the endpoint")]);
    const kept = await cli.run(
      ["webhook-endpoint", "rotate", id, "--tenant", "acme", "--secret-stdin", "--keep-old"],
      "whsec_third-0123456789",
    );
    expect(kept.out).toContain("stays until it is retired by name");
    expect((await openEndpoint(cli.ledger, id))?.secrets).toHaveLength(2);
  });

  it("is disabled and enabled; another tenant's is not found", async () => {
    const id = await makeEndpoint();
    const line = (name: string, tenant = "acme") => ["webhook-endpoint", name, id, "--tenant", tenant];
    expect((await cli.run(line("disable"))).code).toBe(0);
    expect(await openEndpoint(cli.ledger, id)).toBeUndefined();
    expect(await cli.run(line("enable", "bravo"))).toMatchObject({ code: 1 });
    expect((await cli.run(line("enable"))).code).toBe(0);
    expect(await openEndpoint(cli.ledger, id)).toBeDefined();
    const rotate = ["webhook-endpoint", "rotate", id, "--tenant", "bravo", "--secret-stdin"];
    expect(await cli.run(rotate, secret)).toMatchObject({ code: 1 });
    expect((await openEndpoint(cli.ledger, id))?.secrets).toHaveLength(1);
  });
});

describe("webhook verify", () => {
  const body = Buffer.from(`{"id":"evt_1","type":"signing_request.viewed","note":"${address}"}`);
  const sign = (bytes: Buffer, key = secret, at = Math.floor(Date.now() / 1_000)) =>
    `Elchi-Signature: t=${at},v1=${createHmac("sha256", key).update(`${at}.`).update(bytes).digest("hex")}`;
  async function verify(headers: readonly string[], bytes = body, more: readonly string[] = [], id = endpointId) {
    const file = join(folder, randomUUID());
    await writeFile(file, bytes);
    const line = ["webhook", "verify", "--endpoint", id, "--tenant", "acme", ...more];
    const given = headers.flatMap((header) => ["--header", header]);
    const [fromFile, piped] = [
      await cli.run([...line, "--file", file, ...given]),
      await cli.run([...line, "--body-stdin", ...given], bytes),
    ];
    // A second may begin between the two.
    const timeless = (text: string) => text.replace(/\d+ s before now/, "");
    expect({ ...piped, out: timeless(piped.out) }).toMatchObject({ code: fromFile.code, out: timeless(fromFile.out) });
    noneOf(fromFile, address, "MARKER");
    return { code: fromFile.code, out: fromFile.out };
  }

  it("tells which part is wrong", async () => {
    expect(await verify([sign(body)])).toMatchObject({ code: 0, out: expect.stringContaining("It verifies") });
    const wrong = async (headers: readonly string[], bytes = body) => {
      const { code, out } = await verify(headers, bytes);
      expect(code).toBe(1);
      return out.split(". ")[0];
    };
    expect(await wrong([])).toBe("Wrong: the header");
    expect(await wrong(["Elchi-Signature: nonsense"])).toBe("Wrong: the header");
    expect(await wrong([sign(body, "whsec_another-0123456789")])).toBe("Wrong: the secret or the bytes");
    expect(await wrong([sign(body, secret, 1_000_000)])).toBe("Wrong: the time");
    expect(await wrong([sign(body)], Buffer.concat([body, Buffer.from("\n")]))).toBe("Wrong: the bytes");
    const other = await makeEndpoint([], "elchi", "whsec_of-the-other-0123456789");
    const mixed = await verify([sign(body, "whsec_of-the-other-0123456789")]);
    expect(mixed.out).toContain(other);
  });

  it("judges an old delivery as of when it came, a compressed one by the endpoint's rule, and a disabled endpoint too", async () => {
    const at = 1_767_312_000;
    const header = sign(body, secret, at);
    expect((await verify([header], body, ["--at", "2026-01-02T00:01:00Z"])).code).toBe(0);
    const packed = gzipSync(body);
    const encoding = "Content-Encoding: gzip";
    const content = await makeEndpoint(["--gzip", "content"]);
    const wire = await makeEndpoint(["--gzip", "wire"]);
    expect((await verify([sign(body), encoding], packed, [], content)).code).toBe(0);
    expect((await verify([sign(packed), encoding], packed, [], wire)).code).toBe(0);
    expect((await verify([sign(packed), encoding], packed)).out).toContain("takes no compressed deliveries");
    await cli.run(["webhook-endpoint", "disable", wire, "--tenant", "acme"]);
    expect((await verify([sign(body)], body, [], wire)).out).toContain("The endpoint is disabled");
  });

  it.each([
    ["no body", ["--header", "a: b"], 2, "one of --file and --body-stdin"],
    ["a file that is not there", ["--file", "/nowhere/body"], 2, "--file can't be read (ENOENT)"],
    ["no header", ["--body-stdin", "--header", "nonsense"], 2, "--header must be 'name: value'"],
    ["no instant", ["--body-stdin", "--at", "now"], 2, "--at must be an instant"],
    ["another tenant", ["--body-stdin", "--tenant", "bravo"], 1, "webhook endpoint not found"],
  ])("refuses %s", async (_name, more, code, message) => {
    const ran = await cli.run(["webhook", "verify", "--endpoint", endpointId, "--tenant", "acme", ...more], "x");
    expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(message)]);
  });
});
