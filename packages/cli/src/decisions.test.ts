import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  conflict,
  getOperation,
  listConnections,
  markUnknown,
  recordEvidence,
} from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sandboxPdf } from "./sandbox-pdf.js";
import { startTestCli, type TestCli } from "./testing.js";

let cli: TestCli;
let folder: string;
beforeAll(async () => {
  cli = await startTestCli();
  folder = await mkdtemp(join(tmpdir(), "cs-cli-"));
  await writeFile(join(folder, "contract.pdf"), sandboxPdf());
  await cli.run(["migrate"]);
  await cli.run(["tenant", "create", "--id", "acme", "--owner", "contracts-team", "--threshold", "age-unknown=15"]);
  await cli.run(
    [
      "connection",
      "create",
      "--tenant",
      "acme",
      "--provider",
      "wesign",
      "--base-url",
      "http://127.0.0.1:9",
      "--api-key-stdin",
    ],
    "wsk",
  );
});
afterAll(async () => {
  await cli.stop();
  await rm(folder, { recursive: true });
});

const by = { tenantId: "acme", actor: "test", reason: "test" };

async function send(): Promise<string> {
  const line = [
    "send",
    "--tenant",
    "acme",
    "--intent",
    `intent-${randomUUID()}`,
    "--file",
    join(folder, "contract.pdf"),
  ];
  const sent = await cli.run([...line, "--signer", "role=customer,email=signer@example.com,order=1", "--json"]);
  return String(sent.json().operationId);
}

async function inReview(): Promise<string> {
  const id = await send();
  const row = { ...by, operationId: id, owner: randomUUID() };
  await claimForSubmit(cli.ledger, [{ ...row, leaseMs: 60_000 }]);
  await markUnknown(cli.ledger, { ...row, observation: { kind: "ambiguous" }, doubts: true });
  for (const name of ["a", "b"]) {
    await recordEvidence(cli.ledger.sql, { ...by, operationId: id, providerRef: `${name}_${id}`, source: "lookup" });
  }
  const claim = await claimForReconcile(cli.ledger, { ...row, leaseMs: 60_000 });
  if (!claim.applied) throw new Error("not claimed");
  await conflict(cli.ledger, { ...row, evidenceNo: claim.row.evidence_no, reason: "more-than-one-match" });
  // The window after the attempt is over.
  await cli.ledger.sql`ALTER TABLE signing_operation DISABLE TRIGGER cs_guard_operation`;
  await cli.ledger.sql`UPDATE signing_operation SET quiet_from = now() - interval '1 hour' WHERE operation_id = ${id}`;
  await cli.ledger.sql`ALTER TABLE signing_operation ENABLE TRIGGER cs_guard_operation`;
  return id;
}

describe("review", () => {
  const who = ["--tenant", "acme", "--who", "u-17", "--why", "the customer signs this one"];

  it("decides nothing that was not seen: without --evidence it shows what stands there, and exits 2", async () => {
    const id = await inReview();
    const shown = await cli.run(["review", id, "--keep", `a_${id}`, ...who]);
    expect([shown.code, shown.out]).toEqual([2, expect.stringContaining("repeat with --evidence 2")]);
    expect(shown.out).toContain(`reference b_${id}`);
    expect(shown.out).toContain(`keep a_${id}: a VOID for b_${id}`);
    expect((await getOperation(cli.ledger, "acme", id))?.state).toBe("NEEDS_REVIEW");
    const decided = await cli.run(["review", id, "--keep", `a_${id}`, ...who, "--evidence", "2", "--json"]);
    expect([decided.code, decided.json()]).toMatchObject([
      0,
      { decided: true, state: "CONFIRMED", planned: [expect.any(String)] },
    ]);
    const told = await cli.run(["explain", id, "--tenant", "acme"]);
    expect(told.out).toContain("taken as done by a person, not proven");
    expect(told.out).toContain("Reason given: the customer signs this one");
  });

  it.each([
    ["two decisions", ["--keep", "x", "--abandon", ...who], 2, "exactly one of"],
    ["no reason", ["--abandon", "--tenant", "acme", "--who", "u-1", "--why", " "], 2, "--why must not be empty"],
    ["outdated evidence", ["--abandon", ...who, "--evidence", "0"], 1, "newer evidence"],
    ["an unknown reference", ["--keep", "sr_nowhere", ...who, "--evidence", "2"], 1, "no such reference"],
    [
      "another tenant's",
      ["--abandon", "--tenant", "bravo", "--who", "u", "--why", "x", "--evidence", "2"],
      1,
      "not found",
    ],
  ])("refuses %s", async (_name, line, code, message) => {
    const id = await inReview();
    const ran = await cli.run(["review", id, ...line]);
    expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(message)]);
    expect((await getOperation(cli.ledger, "acme", id))?.state).toBe("NEEDS_REVIEW");
  });
});

it("tickets are listed, shown, closed with a resolution; a duplicate is decided", async () => {
  const id = await send();
  const owner = randomUUID();
  await claimForSubmit(cli.ledger, [{ ...by, operationId: id, owner, leaseMs: 60_000 }]);
  await confirm(cli.ledger, [
    {
      ...by,
      operationId: id,
      owner,
      evidenceNo: 0,
      providerRef: `a_${id}`,
      observation: {},
      basis: "proof",
      signingStatus: "SENT",
    },
  ]);
  await recordEvidence(cli.ledger.sql, { ...by, operationId: id, providerRef: `b_${id}`, source: "lookup" });
  const list = await cli.run(["tickets", "list", "--tenant", "acme", "--kind", "duplicate", "--json"]);
  const [ticket] = JSON.parse(list.out);
  const shown = await cli.run(["tickets", "show", ticket.ticketId, "--tenant", "acme"]);
  expect(shown.out).toContain(`reference b_${id}`);
  expect(shown.out).toContain(`may be decided: keep b_${id}: a VOID for a_${id}`);
  const closed = await cli.run([
    "tickets",
    "close",
    ticket.ticketId,
    "--tenant",
    "acme",
    "--who",
    "u-1",
    "--resolution",
    "ignored",
  ]);
  expect([closed.code, closed.err]).toEqual([1, expect.stringContaining("closed by deciding it")]);
  const decided = await cli.run([
    "tickets",
    "decide",
    "--evidence",
    "2",
    ticket.ticketId,
    "--tenant",
    "acme",
    "--keep",
    `a_${id}`,
    "--who",
    "u-1",
    "--why",
    "first one signed",
    "--json",
  ]);
  expect(decided.json()).toMatchObject({ operationId: id, planned: [expect.any(String)] });
});

it("hold, holds and release; policy write, list and revoke", async () => {
  const held = await cli.run([
    "hold",
    "--tenant",
    "acme",
    "--action",
    "SEND",
    "--who",
    "u-1",
    "--why",
    "wrong template",
    "--json",
  ]);
  const { holdId } = held.json();
  expect((await cli.run(["holds", "--tenant", "acme"])).out).toContain("wrong template");
  expect((await cli.run(["release", String(holdId), "--tenant", "acme", "--who", "u-1"])).code).toBe(0);
  expect((await cli.run(["release", String(holdId), "--tenant", "acme", "--who", "u-1"])).code).toBe(1);
  expect((await cli.run(["hold", "--tenant", "acme", "--who", "u-1", "--why", " "])).err).toContain("why is needed");
  const line = [
    "policy",
    "write",
    "--tenant",
    "acme",
    "--policy",
    "treat-unprovable-as-done",
    "--who",
    "legal-1",
    "--why",
    "accepted",
  ];
  expect((await cli.run([...line, "--action", "SEND"])).err).toContain("is for RESEND, VOID");
  const policy = await cli.run([...line, "--action", "RESEND", "--json"]);
  expect((await cli.run(["policy", "list", "--tenant", "acme"])).out).toContain("treat-unprovable-as-done");
  const { policyId } = policy.json();
  expect((await cli.run(["policy", "revoke", String(policyId), "--tenant", "acme", "--who", "legal-1"])).code).toBe(0);
  expect((await cli.run(["policy", "revoke", String(policyId), "--tenant", "acme", "--who", "legal-1"])).code).toBe(1);
});

it("providers prints each line of a capability record with the reference that supports it", async () => {
  const { out, code } = await cli.run(["providers", "wesign"]);
  expect(code).toBe(0);
  for (const text of [
    "Idempotency-Key",
    "error-may-release-a-committed-request",
    "already_confirmed",
    "assumed",
    "checked 2026-",
    "422 idempotency_key_reuse = conflict",
  ]) {
    expect(out).toContain(text);
  }
  expect((await cli.run(["providers", "nobody"])).code).toBe(2);
});

it("the rate of a connection is set and taken away; a tenant's owners and thresholds are shown", async () => {
  await cli.run(["connection", "rate", "2.5", "--tenant", "acme"]);
  expect((await listConnections(cli.ledger, "acme"))[0]?.ratePerSecond).toBe(2.5);
  await cli.run(["connection", "rate", "none", "--tenant", "acme"]);
  expect((await listConnections(cli.ledger, "acme"))[0]?.ratePerSecond).toBeNull();
  expect((await cli.run(["connection", "rate", "0", "--tenant", "acme"])).err).toContain(
    "<per-second> must be more than 0",
  );
  expect((await cli.run(["tenant", "show", "acme", "--json"])).json()).toMatchObject({
    ticketOwners: { aged: "contracts-team" },
    thresholds: { "age-unknown": 15, "age-planned": 60 },
  });
  const bad = await cli.run(["tenant", "create", "--id", "bravo", "--owner", "team", "--threshold", "age-unknwon=1"]);
  expect([bad.code, bad.err]).toEqual([2, expect.stringContaining("age-unknown")]);
});
