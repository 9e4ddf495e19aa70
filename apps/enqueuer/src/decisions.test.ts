import { randomUUID } from "node:crypto";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  conflict,
  listTickets,
  markUnknown,
  recordEvidence,
} from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestApi } from "./testing.js";

let api: TestApi;
let sha256 = "";
beforeAll(async () => {
  api = await TestApi.start();
  sha256 = await api.upload();
});
afterAll(async () => {
  await api.stop();
});

const by = { tenantId: "acme", actor: "test", reason: "test" };
const payload = () => ({
  documents: [{ sha256 }],
  signers: [{ email: "signer@example.com", role: "customer", order: 1 }],
});

async function send(): Promise<string> {
  const { body } = await api.plan({ intentKey: `intent-${newId()}`, action: "SEND", payload: payload() });
  return String(body.operationId);
}

/** A SEND in NEEDS_REVIEW with two references. */
async function inReview(): Promise<{ id: string; evidenceNo: number }> {
  const id = await send();
  const owner = randomUUID();
  const row = { ...by, operationId: id, owner };
  await claimForSubmit(api.ledger, [{ ...row, leaseMs: 60_000 }]);
  await markUnknown(api.ledger, { ...row, observation: { kind: "ambiguous" }, doubts: true });
  for (const name of ["a", "b"]) {
    await recordEvidence(api.ledger.sql, { ...by, operationId: id, providerRef: `${name}_${id}`, source: "lookup" });
  }
  const claim = await claimForReconcile(api.ledger, { ...row, leaseMs: 60_000 });
  if (!claim.applied) throw new Error("not claimed");
  await conflict(api.ledger, { ...row, evidenceNo: claim.row.evidence_no, reason: "more-than-one-match" });
  return { id, evidenceNo: claim.row.evidence_no };
}

const post = (path: string, body: object, key: string | undefined) =>
  api.call("POST", path, { body: JSON.stringify(body), ...(key === undefined ? {} : { key }) });
const decide = (id: string, body: object, key = api.keys.reviewer) =>
  post(`/v1/operations/${id}/review`, { who: "u-17", why: "the customer signs this one", ...body }, key);

describe("POST /v1/operations/{id}/review", () => {
  it("keeps one, plans a VOID for the other, hands it over, and tells who and why", async () => {
    const { id, evidenceNo } = await inReview();
    const { status, body } = await decide(id, { decision: "keep", reference: `a_${id}`, evidenceNo });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      operation: { state: "CONFIRMED", providerRef: `a_${id}`, basis: "person", sent: "unknown" },
    });
    expect(body.planned).toHaveLength(1);
    expect(JSON.stringify(body.operation)).toContain("the customer signs this one");
    expect(api.handedOver.map((job) => job.subjectId)).toContain(Array.isArray(body.planned) ? body.planned[0] : "");
  });

  it("abandons with a replacement, planned in the same transaction and waiting for the VOIDs", async () => {
    const { id, evidenceNo } = await inReview();
    const replacement = { intentKey: `replacement-${id}`, payload: payload() };
    const { status, body } = await decide(id, { decision: "abandon", evidenceNo, replacement });
    expect([status, body.operation]).toMatchObject([200, { state: "SUPERSEDED", supersededBy: body.replacement }]);
    const { body: replaced } = await api.call("GET", `/v1/operations/${String(body.replacement)}`);
    expect(replaced).toMatchObject({ state: "PLANNED", waitsFor: 2 });
  });

  it.each([
    ["an unknown reference", { decision: "keep", reference: "sr_nowhere" }, 422, "reference-unknown"],
    ["no reference", { decision: "keep" }, 422, "reference-unknown"],
    ["an empty reason", { decision: "abandon", why: " " }, 422, "reason-missing"],
    ["an address in the reason", { decision: "abandon", why: "anna@example.com asked" }, 422, "reason-unsuitable"],
    ["no reviewer", { decision: "abandon", who: "" }, 422, "invalid"],
    ["an unknown decision", { decision: "guess" }, 422, "invalid"],
    ["outdated evidence", { decision: "abandon", evidenceNo: 0 }, 409, "evidence-moved"],
    [
      "a reference that can't be read by hand",
      { decision: "keep", reference: "sr_hand", foundByHand: true },
      503,
      "provider-unreachable",
    ],
  ])("refuses %s and changes nothing", async (_name, body, status, code) => {
    const { id, evidenceNo } = await inReview();
    const before = [await api.counts(), (await api.call("GET", `/v1/operations/${id}`)).body];
    const answer = await decide(id, { evidenceNo, ...body });
    expect([answer.status, answer.body.type]).toEqual([status, `/problems/${code}`]);
    expect([await api.counts(), (await api.call("GET", `/v1/operations/${id}`)).body]).toEqual(before);
  });

  it("refuses a producer's key, and shows another tenant nothing", async () => {
    const { id, evidenceNo } = await inReview();
    expect((await decide(id, { decision: "abandon", evidenceNo }, api.keys.acme)).status).toBe(403);
    expect((await decide(newId(), { decision: "abandon", evidenceNo })).status).toBe(404);
  });

  it("two at once: one wins, the other is told who did", async () => {
    const { id, evidenceNo } = await inReview();
    const answers = await Promise.all(
      ["u-1", "u-2"].map((who) => decide(id, { decision: "keep", reference: `a_${id}`, evidenceNo, who })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const lost = answers.find(({ status }) => status === 409);
    expect(lost?.body).toMatchObject({
      type: "/problems/not-in-review",
      state: "CONFIRMED",
      decidedBy: expect.stringMatching(/^person:u-[12]$/),
    });
  });
});

describe("tickets", () => {
  it("show what a decision needs; a review's can't be closed past it", async () => {
    const { id, evidenceNo } = await inReview();
    const ticket = (await listTickets(api.ledger, "acme")).find((each) => each.subjectId === id);
    const shown = await api.call("GET", `/v1/tickets/${ticket?.ticketId}`);
    expect(shown.body).toMatchObject({
      kind: "needs-review",
      owner: "contracts-team",
      operation: { state: "NEEDS_REVIEW", evidenceNo },
    });
    const closing = { who: "u-17", resolution: "ignored" };
    expect((await post(`/v1/tickets/${ticket?.ticketId}/resolve`, closing, api.keys.reviewer)).body).toMatchObject({
      type: "/problems/ticket-is-decided",
    });
  });

  it("a duplicate is decided once, either way", async () => {
    const id = await send();
    const owner = randomUUID();
    await claimForSubmit(api.ledger, [{ ...by, operationId: id, owner, leaseMs: 60_000 }]);
    await confirm(api.ledger, [
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
    await recordEvidence(api.ledger.sql, { ...by, operationId: id, providerRef: `b_${id}`, source: "webhook" });
    const ticket = (await listTickets(api.ledger, "acme", 100, { kind: "duplicate" })).find(
      (each) => each.subjectId === id,
    );
    const body = { evidenceNo: 2, keep: `b_${id}`, who: "u-17", why: "the customer signs this one" };
    const decided = await post(`/v1/tickets/${ticket?.ticketId}/decide`, body, api.keys.reviewer);
    expect(decided.body).toMatchObject({ operationId: id, leftAlone: 0, planned: [expect.any(String)] });
    expect((await post(`/v1/tickets/${ticket?.ticketId}/decide`, body, api.keys.reviewer)).body).toMatchObject({
      type: "/problems/ticket-closed",
    });
    const closed = await api.call("GET", "/v1/tickets?status=closed&kind=duplicate");
    expect(JSON.stringify(closed.body)).toContain("person:u-17");
  });
});

it("holds and policies: written with who and why, listed, ended, and only by an admin's key", async () => {
  const hold = { who: "u-1", why: "wrong template in use", action: "SEND", minutes: 5 };
  expect((await post("/v1/holds", hold, api.keys.acme)).status).toBe(403);
  const made = await post("/v1/holds", hold, api.keys.admin);
  expect(made.status).toBe(201);
  expect((await api.call("GET", "/v1/holds")).body).toMatchObject({
    data: [{ holdId: made.body.holdId, action: "SEND", heldBy: "u-1" }],
  });
  const release = () =>
    api.call("DELETE", `/v1/holds/${String(made.body.holdId)}?who=u-2`, { key: api.keys.admin ?? null });
  expect((await release()).status).toBe(204);
  expect((await release()).body).toMatchObject({ type: "/problems/hold-over" });
  const policy = { who: "legal-1", why: "a reminder may be lost", policy: "treat-unprovable-as-done", action: "SEND" };
  expect((await post("/v1/policies", policy, api.keys.admin)).body).toMatchObject({
    type: "/problems/policy-unsuitable",
  });
  expect((await post("/v1/policies", { ...policy, action: "RESEND" }, api.keys.admin)).status).toBe(201);
  expect((await api.call("GET", "/v1/policies")).body).toMatchObject({
    data: [{ policy: "treat-unprovable-as-done", writtenBy: "legal-1" }],
  });
});

it("a stored document comes back to its own tenant only", async () => {
  const mine = await fetch(new URL(`/v1/documents/${sha256}`, api.url), {
    headers: { authorization: `Bearer ${api.keys.acme}` },
  });
  expect([mine.status, mine.headers.get("content-type"), await mine.text()]).toEqual([
    200,
    "application/pdf",
    "%PDF-1.4 a contract",
  ]);
  expect((await api.call("GET", `/v1/documents/${"ab".repeat(32)}`)).status).toBe(404);
});
