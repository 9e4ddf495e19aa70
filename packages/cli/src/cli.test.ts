import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { authenticate, claimForSubmit, confirm, getOperation, openConnection, openEndpoint } from "@countersign/ledger";
import { plainPdf, type RunningSimulator, startSimulator } from "@countersign/simulator";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram } from "./program.js";
import { sandboxPdf } from "./sandbox-pdf.js";
import { type Ran, ran, runLine, startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
let simulator: RunningSimulator;
let folder: string;
const apiKey = "wsk_MARKER-KEY";
const address = "marker@example.com";

beforeAll(async () => {
  cli = await startTestCli();
  simulator = await startSimulator({ workspaces: [{ name: "w", keys: [apiKey] }] });
  folder = await mkdtemp(join(tmpdir(), "cs-cli-"));
  await writeFile(join(folder, "contract.pdf"), plainPdf(["a contract"]));
});
afterAll(async () => {
  await simulator.stop();
  await cli.stop();
  await rm(folder, { recursive: true });
});

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));

/** The command as a real process. */
function spawned(line: readonly string[], env: Record<string, string>, stdin = ""): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...line], { env: { PATH: process.env.PATH, ...env } });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => {
      out += String(chunk);
    });
    child.stderr.on("data", (chunk) => {
      err += String(chunk);
    });
    child.on("error", reject);
    child.on("close", (code) => resolve(ran(code ?? -1, out.trimEnd(), err.trimEnd())));
    child.stdin.end(stdin);
  });
}

const connectionLine = (...more: string[]): string[] => [
  ...["connection", "create", "--tenant", "acme", "--provider", "wesign", "--base-url", simulator.url],
  ...["--api-key-stdin", ...more],
];

const sendLine = (intent: string, ...more: string[]): string[] => [
  ...["send", "--tenant", "acme", "--intent", intent, "--file", join(folder, "contract.pdf")],
  ...["--signer", `role=customer,email=${address},order=1,name=Doe, Jane`, "--json", ...more],
];

describe("setting up, in the order of an operator", () => {
  it("says that the tables are missing, makes them, and may be asked again", async () => {
    const early = await cli.run(["operations", "list", "--tenant", "acme"]);
    expect([early.code, early.err]).toEqual([1, expect.stringContaining("run countersign migrate")]);
    for (const _ of [1, 2]) {
      const done = await cli.run(["migrate", "--json"]);
      expect([done.code, done.json()]).toMatchObject([0, { migrated: true, queueTables: true }]);
    }
  });

  it("creates a tenant whose every ticket kind has an owner", async () => {
    const made = await cli.run([
      ...["tenant", "create", "--id", "acme", "--owner", "contracts"],
      ...["--owner-for", "dead-letter=platform", "--threshold", "aged=15", "--json"],
    ]);
    expect([made.code, made.json()]).toMatchObject([0, { tenantId: "acme" }]);
    const [row] = await cli.ledger.sql`SELECT ticket_owners, thresholds FROM tenant WHERE tenant_id = 'acme'`;
    expect(row).toMatchObject({
      ticket_owners: { "dead-letter": "platform", quarantine: "contracts" },
      thresholds: { aged: 15 },
    });
    const again = await cli.run(["tenant", "create", "--id", "acme", "--owner", "x", "--json"]);
    expect([again.code, again.json()]).toMatchObject([1, { error: { code: "tenant-exists" } }]);
  });

  it("prints an API key once; it works and has the scopes asked for", async () => {
    const made = await cli.run([
      ...["key", "create", "--tenant", "acme", "--name", "billing", "--scope", "operations:read"],
    ]);
    expect(made.out).toMatch(/^csk_/);
    expect(await authenticate(cli.ledger, made.out)).toMatchObject({ tenantId: "acme", scopes: ["operations:read"] });
  });

  it("stores a connection with its key from standard input, encrypted", async () => {
    const made = await cli.run(connectionLine("--default"), `${apiKey}\n`);
    expect([made.code, made.out]).toEqual([0, expect.stringContaining("may confirm but not prove absence")]);
    expect(await openConnection(cli.ledger, "acme", "main")).toMatchObject({ credential: apiKey, isDefault: true });
    const listed = await cli.run(["connection", "list", "--tenant", "acme"]);
    expect(listed.out).toContain("not verified");
  });

  it("makes a webhook endpoint and prints its path", async () => {
    const made = await cli.run(
      ["webhook-endpoint", "create", "--tenant", "acme", "--scheme", "elchi", "--secret-stdin"],
      "whsec_MARKER\n",
    );
    expect(made.out).toMatch(/^\/webhooks\/we_[\w-]{32}$/);
    const endpoint = await openEndpoint(cli.ledger, made.out.replace("/webhooks/", ""));
    expect(endpoint).toMatchObject({ tenantId: "acme", connectionId: "main", secrets: [{ secret: "whsec_MARKER" }] });
  });

  it("pauses a connection in somebody's name until it is resumed, with an owned ticket that the resumption closes", async () => {
    const paused = await cli.run([
      ...["connections", "pause", "--tenant", "acme", "--who", "u-17", "--why", "provider maintenance", "--json"],
    ]);
    const reason = "person:u-17: provider maintenance";
    expect([paused.code, paused.json()]).toMatchObject([0, { connectionId: "main", pausedUntil: null, reason }]);
    expect(await openConnection(cli.ledger, "acme", "main")).toMatchObject({ pauseReason: reason });
    const tickets = await cli.run(["tickets", "list", "--tenant", "acme"]);
    expect(tickets.out).toContain("connection-paused");
    const shorter = [
      "connection",
      "pause",
      "--tenant",
      "acme",
      "--who",
      "u-18",
      "--why",
      "short",
      "--for",
      "5m",
      "--json",
    ];
    expect((await cli.run(shorter)).json()).toMatchObject({ pausedUntil: null, reason });
    expect((await cli.run(["connection", "resume", "--tenant", "acme", "--who", "u-18"])).code).toBe(0);
    expect(await openConnection(cli.ledger, "acme", "main")).toMatchObject({ pausedForMs: 0, pauseReason: null });
    const closed = await cli.run(["tickets", "list", "--tenant", "acme", "--closed", "--json"]);
    expect(closed.out).toContain('"resolvedBy":"person:u-18"');
  });

  it("pauses a connection until a moment, without a ticket; a moment that has passed is refused", async () => {
    const line = ["connection", "pause", "--tenant", "acme", "--who", "u-17", "--why", "window", "--json"];
    const until = await cli.run([...line, "--until", "2126-01-31T08:00:00Z"]);
    expect(until.json()).toMatchObject({ pausedUntil: "2126-01-31T08:00:00Z" });
    expect((await cli.run(["tickets", "list", "--tenant", "acme"])).out).toBe("no open tickets");
    const past = await cli.run([...line, "--until", "2026-01-31T08:00:00Z"]);
    expect([past.code, past.json()]).toMatchObject([1, { error: { code: "pause-over" } }]);
    const both = await cli.run([...line, "--until", "2126-01-31T08:00:00Z", "--for", "5m"]);
    expect([both.code, both.err]).toEqual([2, expect.stringContaining("give one of --for")]);
    await cli.run(["connection", "resume", "--tenant", "acme", "--who", "u-17"]);
  });
});

const verifyLine = (connection: string, ...more: string[]): string[] => [
  ...["connection", "verify", "--tenant", "acme", "--connection", connection, "--json", ...more],
];

describe("connection verify", () => {
  it("refuses without --sandbox-send, says what it would do, and calls nobody", async () => {
    const refused = await cli.run(verifyLine("main"));
    expect([refused.code, refused.err]).toEqual([2, expect.stringMatching(/--sandbox-send.*real request.*withdrawn/)]);
    expect(simulator.audit().sandbox.requests).toBe(0);
  });

  it("sends one tagged request outside every audit, measures the lag, withdraws it, and records the result", async () => {
    simulator.configure({ lookupLagMs: 300 });
    const done = await cli.run(verifyLine("main", "--sandbox-send"));
    simulator.configure({ lookupLagMs: 0 });
    expect(done.json()).toMatchObject({
      verified: true,
      leftBehind: false,
      steps: ["send", "find-by-metadata", "empty-filter", "list-of-many", "read-by-id", "withdraw"].map((step) => ({
        step,
        ok: true,
      })),
    });
    expect(done.code).toBe(0);
    expect(Number(done.json().lagMs)).toBeGreaterThanOrEqual(200);
    expect(simulator.audit()).toMatchObject({
      sandbox: { requests: 1, withdrawals: 1 },
      totals: { requests: 0 },
      operations: [],
    });
    const stored = await openConnection(cli.ledger, "acme", "main");
    expect(stored.lookupVerifiedAt).not.toBeNull();
  });

  it.each([
    ["the provider has no list", { mode: "poor" }, "find-by-metadata: lookup-absent"],
    ["the list ignores the filter", { mode: "list-ignores-filter" }, "filter-not-honoured"],
    ["the request doesn't show up in time", { lookupLagMs: 60_000 }, "find-by-metadata: not-found-in-time"],
  ])("records that it is not verified, withdraws and exits 1 where %s", async (_, patch, note) => {
    // Somebody else's request, which a list without a filter shows.
    const other = await fetch(`${simulator.url}/v1/signing-requests`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
      body: foreignRequest(),
    });
    expect(other.ok).toBe(true);
    const before = simulator.audit().sandbox;
    simulator.configure(patch);
    const done = await cli.run(verifyLine("main", "--sandbox-send", "--lag-timeout-ms", "400"));
    simulator.configure({ mode: "normal", lookupLagMs: 0 });
    expect([done.code, done.json()]).toMatchObject([1, { verified: false, leftBehind: false }]);
    expect(String(done.json().note)).toContain(note);
    const { requests, withdrawals } = simulator.audit().sandbox;
    expect([requests - before.requests, withdrawals - before.withdrawals]).toEqual([1, 1]);
    expect((await openConnection(cli.ledger, "acme", "main")).lookupVerifiedAt).toBeNull();
  });

  it("after an ambiguous send it finds and withdraws what was made, and records nothing", async () => {
    const before = simulator.audit().sandbox;
    simulator.script({ kind: "5xx-after-commit", endpoint: "send" });
    const done = await cli.run(verifyLine("main", "--sandbox-send"));
    expect([done.code, done.json()]).toMatchObject([1, { error: { code: "send-ambiguous" } }]);
    const { requests, withdrawals } = simulator.audit().sandbox;
    expect([requests - before.requests, withdrawals - before.withdrawals]).toEqual([1, 1]);
  });

  it("a provider out of reach is exit 3, a bad key exit 1, a lookup switched off exit 1", async () => {
    const line = ["connection", "create", "--tenant", "acme", "--provider", "wesign", "--api-key-stdin"];
    await cli.run([...line, "--id", "nobody", "--base-url", "http://127.0.0.1:1"], apiKey);
    await cli.run([...line, "--id", "bad-key", "--base-url", simulator.url], "wsk_wrong");
    await cli.run([...line, "--id", "blind", "--base-url", simulator.url, "--no-metadata-lookup"], apiKey);
    expect((await cli.run(verifyLine("nobody", "--sandbox-send"))).code).toBe(3);
    const bad = await cli.run(verifyLine("bad-key", "--sandbox-send"));
    expect([bad.code, bad.json()]).toMatchObject([1, { error: { code: "send-declined" } }]);
    const blind = await cli.run(verifyLine("blind", "--sandbox-send"));
    expect([blind.code, blind.json()]).toMatchObject([1, { error: { code: "lookup-off" } }]);
  });
});

function foreignRequest(): FormData {
  const form = new FormData();
  form.set("file", new Blob([plainPdf(["x"])], { type: "application/pdf" }), "x.pdf");
  form.set("signers", JSON.stringify([{ email: "a@example.com", role: "r", order: 1 }]));
  form.set("metadata", JSON.stringify({ operation_id: randomUUID(), tenant: "somebody" }));
  return form;
}

describe("send, void, show and explain", () => {
  it("plans once; the same again is the same operation, another payload a named conflict", async () => {
    const first = await cli.run(sendLine("intent-1"));
    expect([first.code, first.json()]).toMatchObject([0, { state: "PLANNED", duplicate: false }]);
    const again = await cli.run(sendLine("intent-1"));
    expect(again.json()).toMatchObject({ operationId: first.json().operationId, duplicate: true });
    const other = await cli.run(sendLine("intent-1", "--expires-in-days", "3"));
    expect([other.code, other.json()]).toMatchObject([1, { error: { code: "payload-conflict" } }]);
    expect(other.err).toContain("differs in: expiresInDays");
    expect(other.err).not.toContain("intent-1");
  });

  it("an amendment plans the void of what it replaces", async () => {
    const { operationId } = (await cli.run(sendLine("intent-2"))).json();
    await confirmed(String(operationId), "sr_kept");
    const amended = await cli.run(
      sendLine("intent-2-r2", "--supersedes", String(operationId), "--expires-in-days", "9"),
    );
    expect(amended.json()).toMatchObject({ state: "PLANNED", alsoPlanned: [expect.any(String)] });
    const shown = await cli.run(["show", String(operationId), "--tenant", "acme", "--json"]);
    expect(shown.json()).toMatchObject({ state: "CONFIRMED", sent: "yes", supersededBy: amended.json().operationId });
  });

  it("a void of what was never sent retires it", async () => {
    const { operationId } = (await cli.run(sendLine("intent-3"))).json();
    const voided = await cli.run(["void", String(operationId), "--tenant", "acme", "--intent", "void-3", "--json"]);
    expect(voided.code).toBe(0);
    expect(await getOperation(cli.ledger, "acme", String(operationId))).toMatchObject({ state: "SUPERSEDED" });
  });

  it("explains in order: did it go out, how do we know, what happens next, when somebody looks", async () => {
    const { operationId } = (await cli.run(sendLine("intent-4"))).json();
    const { out } = await cli.run(["explain", String(operationId), "--tenant", "acme"]);
    const order = [
      "No, this signature request has not gone out.",
      "How do we know",
      "What happens next",
      "looks next at",
    ];
    const places = order.map((sentence) => out.indexOf(sentence));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBe(0);
    const json = (await cli.run(["explain", String(operationId), "--tenant", "acme", "--json"])).json();
    expect(json).toMatchObject({ sent: "no", nextLookAt: expect.any(String) });
    await confirmed(String(operationId), "sr_4");
    expect((await cli.run(["explain", String(operationId), "--tenant", "acme"])).out).toMatch(/^Yes/);
  });

  it("--wait comes back with the resolution, or with 1 when the time is over", async () => {
    const waiting = cli.run(sendLine("intent-5", "--wait", "--wait-seconds", "20"));
    await expect.poll(async () => (await byIntent("intent-5")) !== undefined).toBe(true);
    await confirmed((await byIntent("intent-5")) ?? "", "sr_5");
    const done = await waiting;
    expect([done.code, done.json()]).toMatchObject([0, { state: "CONFIRMED", sent: "yes" }]);
    const open = await cli.run(sendLine("intent-6", "--wait", "--wait-seconds", "1"));
    expect([open.code, open.json()]).toMatchObject([1, { state: "PLANNED", sent: "no" }]);
  });

  it("lists a tenant's operations and no other tenant's", async () => {
    await cli.run(["tenant", "create", "--id", "bravo", "--owner", "b"]);
    const mine = await cli.run(["operations", "list", "--tenant", "acme", "--state", "CONFIRMED"]);
    expect(mine.out).toContain("CONFIRMED");
    const theirs = await cli.run(["operations", "list", "--tenant", "bravo"]);
    expect(theirs.out).toBe("no operations");
    const id = (await byIntent("intent-5")) ?? "";
    for (const command of ["show", "explain"]) expect((await cli.run([command, id, "--tenant", "bravo"])).code).toBe(1);
  });
});

async function byIntent(intentKey: string): Promise<string | undefined> {
  const [row] = await cli.ledger.sql<{ id: string }[]>`
    SELECT operation_id AS id FROM signing_operation WHERE tenant_id = 'acme' AND intent_key = ${intentKey}`;
  return row?.id;
}

async function confirmed(operationId: string, providerRef: string): Promise<void> {
  const common = { tenantId: "acme", operationId, owner: randomUUID(), actor: "test", reason: "accepted" };
  await claimForSubmit(cli.ledger, [{ ...common, leaseMs: 60_000 }]);
  const observation = { kind: "accepted", ref: providerRef, httpStatus: 201 };
  const [outcome] = await confirm(cli.ledger, [{ ...common, evidenceNo: 0, providerRef, observation, basis: "proof" }]);
  expect(outcome?.applied).toBe(true);
}

describe("what is wrong is one clear line, and changes nothing", () => {
  it.each<[string, string[], string, number, RegExp]>([
    ["a bad tenant id", ["tenant", "create", "--id", "Acme!", "--owner", "x"], "", 2, /--id must be 1 to 63/],
    ["a missing option", ["tenant", "create", "--id", "acme"], "", 2, /--owner/],
    ["an unknown option", ["tenant", "create", "--id", "x", "--owner", "y", "--ids", "z"], "", 2, /--ids/],
    ["an unknown command", ["tenantz"], "", 2, /tenantz/],
    [
      "a bad ticket kind",
      ["tenant", "create", "--id", "t", "--owner", "x", "--owner-for", "q=y"],
      "",
      2,
      /--owner-for/,
    ],
    ["a bad scope", ["key", "create", "--tenant", "acme", "--name", "n", "--scope", "all"], "", 2, /--scope/],
    ["an unknown tenant", ["key", "create", "--tenant", "nobody", "--name", "n"], "", 1, /tenant not found/],
    ["a bad operation id", ["show", "42", "--tenant", "acme"], "", 2, /<operation> must be a UUIDv7/],
    ["a bad state", ["operations", "list", "--tenant", "acme", "--state", "DONE"], "", 2, /--state must be one of/],
  ])("%s", async (_, line, stdin, code, message) => {
    const refused = await cli.run(line, stdin);
    expect([refused.code, refused.err]).toEqual([code, expect.stringMatching(message)]);
    expect(refused.err.split("\n")).toHaveLength(1);
    expect(refused.out).toBe("");
  });

  it("secrets come from standard input only, and only over https or loopback", async () => {
    const empty = await cli.run(connectionLine("--id", "other"), "");
    expect([empty.code, empty.err]).toEqual([2, expect.stringMatching(/--api-key-stdin.*standard input/)]);
    const broken = await cli.run(connectionLine("--id", "other"), `${apiKey}\nsecond line`);
    expect(broken.code).toBe(2);
    const line = [
      "connection",
      "create",
      "--tenant",
      "acme",
      "--provider",
      "wesign",
      "--api-key-stdin",
      "--id",
      "other",
    ];
    const plain = await cli.run([...line, "--base-url", "http://provider.example"], apiKey);
    expect([plain.code, plain.err]).toEqual([2, expect.stringMatching(/--base-url.*--allow-http/)]);
    const within = await cli.run([...line, "--base-url", "https://user:pw@provider.example"], apiKey);
    expect([within.code, within.err]).toEqual([2, expect.stringMatching(/--base-url.*credentials/)]);
    for (const { err, out } of [empty, broken, plain, within]) expect(err + out).not.toMatch(/MARKER|user:pw/);
  });

  it.each<[string, (file: string) => string[], RegExp]>([
    ["no PDF", (file) => ["--file", file], /--file is not a PDF/],
    ["a missing file", () => ["--file", "/nowhere/MARKER.pdf"], /--file can't be read \(ENOENT\)/],
    ["a bad signer", () => ["--signer", `role=x,email=${address}`], /--signer 2 needs order=/],
    ["an unknown key", () => ["--signer", "role=x,mail=MARKER"], /--signer 2 must be role=/],
    ["a bad address", () => ["--signer", "role=x,order=2,email=MARKER\r\nbcc"], /--signer 2 email must not contain/],
    ["our own prefix", () => ["--intent", "cs:MARKER"], /--intent must not start with cs:/],
  ])("send with %s", async (_, more, message) => {
    const file = join(folder, "MARKER.txt");
    await writeFile(file, "hello");
    const refused = await cli.run(sendLine("intent-bad", ...more(file)));
    expect([refused.code, refused.err]).toEqual([2, expect.stringMatching(message)]);
    expect(refused.err + refused.out).not.toMatch(/MARKER|marker@/);
    expect(await byIntent("intent-bad")).toBeUndefined();
  });
});

describe("as a real process", () => {
  it("exits 0, 1, 2 and 3, with one JSON document on stdout and the error on stderr", async () => {
    const env = { DATABASE_URL: cli.url, COUNTERSIGN_ENCRYPTION_KEY: cli.key };
    const [done, refused, usage, noEnv, away, help] = await Promise.all([
      spawned(["connection", "list", "--tenant", "acme", "--json"], env),
      spawned(["tenant", "create", "--id", "acme", "--owner", "x", "--json"], env),
      spawned(["send", "--tenant", "acme"], env),
      spawned(["tickets", "list", "--tenant", "acme"], { DATABASE_URL: cli.url }),
      spawned(["tickets", "list", "--tenant", "acme"], { ...env, DATABASE_URL: "postgres://u:MARKER@127.0.0.1:1/d" }),
      spawned(["send", "--help"], {}),
    ]);
    expect([done.code, refused.code, usage.code, noEnv.code, away.code, help.code]).toEqual([0, 1, 2, 2, 3, 0]);
    expect(Array.isArray(done.json())).toBe(true);
    expect(refused.json()).toMatchObject({ error: { code: "tenant-exists" } });
    expect(noEnv.err).toContain("COUNTERSIGN_ENCRYPTION_KEY is missing");
    expect(away.err).toContain("DATABASE_URL");
    expect(away.err).not.toContain("MARKER");
    expect(help.out).toContain("Example:");
  });

  it("takes a secret from standard input and never echoes it", async () => {
    const env = { DATABASE_URL: cli.url, COUNTERSIGN_ENCRYPTION_KEY: cli.key };
    const made = await spawned(connectionLine("--id", "piped"), env, `${apiKey}\n`);
    expect(made.code).toBe(0);
    expect(made.out + made.err).not.toContain("MARKER");
    expect((await openConnection(cli.ledger, "acme", "piped")).credential).toBe(apiKey);
  });
});

describe("every command", () => {
  const leaves = (command: Command, path: readonly string[]): (readonly string[])[] =>
    command.commands.length === 0 ? [path] : command.commands.flatMap((each) => leaves(each, [...path, each.name()]));
  const io = { out: () => undefined, err: () => undefined, stdin: async () => Buffer.alloc(0), env: {} };
  const all = leaves(buildProgram({ io, end: () => undefined }), []).map((path) => path.join(" "));

  it("is found by this test", () => {
    expect(all.length).toBeGreaterThan(40);
    expect(all).toContain("connection verify");
  });

  it.each(all)("%s has --json and a --help with an example and its exit codes", async (command) => {
    const help = await runLine([...command.split(" "), "--help"], {});
    expect(help.code).toBe(0);
    expect(help.out).toContain("--json");
    const [noun = "", ...rest] = command.split(" ");
    const plural = new RegExp(`countersign ${noun.replace(/y$/, "(y|ie)")}s? ${rest.join(" ")}`.trimEnd());
    expect(help.out.split("Example:")[1]).toMatch(plural);
    expect(help.out).toMatch(/Exit codes: 0 .*, 1 .*, 2 usage, 3 /);
  });

  it("is documented", async () => {
    const page = await readFile(new URL("../../../docs/cli.md", import.meta.url), "utf8");
    for (const command of all) expect(page).toContain(`\`${command}\``);
  });
});

it("the sandbox document is a PDF whose cross-reference table is right", () => {
  const text = Buffer.from(sandboxPdf()).toString("latin1");
  const start = Number(/startxref\n(\d+)/.exec(text)?.[1]);
  expect(text.slice(start)).toMatch(/^xref\n/);
  const offsets = [...text.matchAll(/^(\d{10}) 00000 n/gm)].map((match) => Number(match[1]));
  expect(offsets).toHaveLength(5);
  offsets.forEach((offset, index) => {
    expect(text.slice(offset)).toMatch(new RegExp(`^${index + 1} 0 obj`));
  });
});
