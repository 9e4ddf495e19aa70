import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { type Countersign, CountersignProblem, createClient } from "@countersign/client";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  conflict,
  createApiKey,
  getHistory,
  getOperation,
  knownReferences,
  listTickets,
  markUnknown,
  openTicket,
  recordEvidence,
  recordNearMiss,
  resolveTicket,
} from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestApi } from "./testing.js";

let api: TestApi;
let sha256 = "";
let reviewer: Countersign;
let admin: Countersign;
const provider = new Map<string, { status: number; body?: object }>();
const asked: string[] = [];
let providerServer: Server;

beforeAll(async () => {
  api = await TestApi.start();
  sha256 = await api.upload();
  reviewer = client(api.keys.reviewer);
  admin = client(api.keys.admin);
  providerServer = createServer((request, response) => {
    const ref = decodeURIComponent(request.url?.split("/").at(-1) ?? "");
    asked.push(ref);
    const answer = provider.get(ref) ?? { status: 404, body: { error: { code: "not_found", message: "no" } } };
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body ?? {}));
  });
  await new Promise<void>((resolve) => providerServer.listen(0, "127.0.0.1", resolve));
  const address = providerServer.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await api.ledger
    .sql`UPDATE provider_connection SET base_url = ${`http://127.0.0.1:${port}`} WHERE tenant_id = 'acme'`;
});
afterAll(async () => {
  providerServer.closeAllConnections();
  await new Promise((resolve) => providerServer.close(resolve));
  await api.stop();
});

const client = (apiKey = ""): Countersign => createClient({ baseUrl: api.url, apiKey, pause: async () => undefined });
const by = { tenantId: "acme", actor: "test", reason: "test" };
const person = { who: "u-17", why: "the customer signs this one" };
const payload = () => ({
  documents: [{ sha256 }],
  signers: [{ email: "signer@example.com", role: "customer", order: 1 }],
});

async function send(change: object = {}): Promise<string> {
  const { body } = await api.plan({ intentKey: `intent-${newId()}`, action: "SEND", payload: payload(), ...change });
  return String(body.operationId);
}

async function confirmed(): Promise<{ id: string; ref: string }> {
  const id = await send();
  const row = { ...by, operationId: id, owner: randomUUID() };
  await claimForSubmit(api.ledger, [{ ...row, leaseMs: 60_000 }]);
  const end = {
    evidenceNo: 0,
    providerRef: `a_${id}`,
    observation: {},
    basis: "proof",
    signingStatus: "SENT",
  } as const;
  await confirm(api.ledger, [{ ...row, ...end }]);
  return { id, ref: `a_${id}` };
}

/** Takes an operation through one attempt in doubt to NEEDS_REVIEW; answers the evidence number to decide on. */
async function toReview(id: string, refs: readonly string[], ledger = api.ledger): Promise<number> {
  const row = { ...by, operationId: id, owner: randomUUID() };
  await claimForSubmit(ledger, [{ ...row, leaseMs: 60_000 }]);
  await markUnknown(ledger, { ...row, observation: { kind: "ambiguous" }, doubts: true });
  for (const providerRef of refs) {
    await recordEvidence(ledger.sql, { ...by, operationId: id, providerRef, source: "lookup" });
  }
  const claim = await claimForReconcile(ledger, { ...row, leaseMs: 60_000 });
  if (!claim.applied) throw new Error("not claimed");
  const reason = refs.length > 1 ? "more-than-one-match" : "unprovable";
  await conflict(ledger, { ...row, evidenceNo: claim.row.evidence_no, reason });
  return claim.row.evidence_no;
}

async function inReview(...names: string[]) {
  const id = await send();
  const refs = names.map((name) => `${name}_${id}`);
  return { id, refs, evidenceNo: await toReview(id, refs) };
}

const setStatus = (id: string, ref: string, status: string) => api.ledger.sql`
  INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status)
  VALUES ('acme', 'main', ${ref}, ${id}, ${status})`;

const ticketOf = async (id: string, kind: string): Promise<string> => {
  const found = (await listTickets(api.ledger, "acme", 1_000, { kind })).find((each) => each.subjectId === id);
  return found?.ticketId ?? "none";
};

const targetsOf = async (ids: readonly string[]): Promise<string[]> => {
  const rows = await api.ledger.sql<{ target_ref: string }[]>`
    SELECT target_ref FROM signing_operation WHERE operation_id::text = ANY(string_to_array(${ids.join(",")}, ','))`;
  return rows.map((row) => row.target_ref).sort();
};

/** Everything of an operation that a refused decision must leave as it was. */
const snapshot = async (id: string) => ({
  operation: await getOperation(api.ledger, "acme", id),
  history: await getHistory(api.ledger, "acme", id),
  references: await knownReferences(api.ledger.sql, "acme", id),
  tickets: await listTickets(api.ledger, "acme", 1_000, { status: "all" }),
  counts: await api.counts(),
});

/** The problem that a decision is refused with; nothing may have changed. */
async function refusal(id: string, decide: () => Promise<unknown>) {
  const before = await snapshot(id);
  const error = await decide().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(await snapshot(id)).toEqual(before);
  if (!(error instanceof CountersignProblem)) throw new Error("not refused", { cause: error });
  return error.problem;
}

describe("a reference found by hand", () => {
  const byHand = (id: string, reference: string, evidenceNo: number) =>
    reviewer.review(id, { ...person, decision: "keep", reference, foundByHand: true, evidenceNo });

  it("is read at the provider, and kept with the status that it has there", async () => {
    const { id, evidenceNo } = await inReview();
    provider.set(`hand_${id}`, { status: 200, body: { id: `hand_${id}`, status: "viewed" } });
    const { operation, planned } = await byHand(id, `hand_${id}`, evidenceNo);
    expect(operation).toMatchObject({ state: "CONFIRMED", providerRef: `hand_${id}`, signingStatuses: ["VIEWED"] });
    expect([planned, operation.basis]).toEqual([[], "person"]);
  });

  const record = (ref: string, more: object = {}) => ({ status: 200, body: { id: ref, status: "sent", ...more } });
  it.each([
    [
      "that the provider doesn't know",
      () => ({ status: 404, body: { error: { code: "not_found", message: "no" } } }),
      422,
      "reference-not-found",
    ],
    [
      "of another operation",
      (ref: string) => record(ref, { metadata: { tenant: "acme", operation_id: newId() } }),
      409,
      "reference-of-another-operation",
    ],
    [
      "of another tenant",
      (ref: string) => record(ref, { metadata: { tenant: "bravo" } }),
      409,
      "reference-of-another-operation",
    ],
    [
      "of a request that mailed nobody",
      (ref: string) => record(ref, { status: "staged" }),
      422,
      "reference-is-a-draft",
    ],
    ["while the provider fails", () => ({ status: 500 }), 503, "provider-unreachable"],
  ])("%s is refused and changes nothing", async (_name, answer, status, code) => {
    const { id, evidenceNo } = await inReview();
    provider.set(`hand_${id}`, answer(`hand_${id}`));
    const before = await snapshot(id);
    const { status: answered, body } = await api.call("POST", `/v1/operations/${id}/review`, {
      key: api.keys.reviewer ?? null,
      body: JSON.stringify({ ...person, decision: "keep", reference: `hand_${id}`, foundByHand: true, evidenceNo }),
    });
    expect([answered, body.type]).toEqual([status, `/problems/${code}`]);
    expect(await snapshot(id)).toEqual(before);
  });

  it("no reference at all is refused without a call, and so is what the ledger refuses anyway", async () => {
    const { id, evidenceNo } = await inReview("a");
    const before = asked.length;
    expect((await refusal(id, () => byHand(id, "..", evidenceNo))).type).toBe("/problems/reference-not-found");
    expect((await refusal(id, () => byHand(id, `hand_${id}`, 0))).type).toBe("/problems/evidence-moved");
    expect(asked).toHaveLength(before);
  });

  it("that the ledger holds for another operation is refused, whatever the provider says", async () => {
    const { id, evidenceNo } = await inReview();
    const { ref } = await confirmed();
    provider.set(ref, { status: 200, body: { id: ref, status: "sent" } });
    expect((await refusal(id, () => byHand(id, ref, evidenceNo))).type).toBe(
      "/problems/reference-of-another-operation",
    );
  });
});

describe("a review that may not stand changes nothing", () => {
  it("names the evidence to look at", async () => {
    const { id, refs, evidenceNo } = await inReview("a", "b");
    await recordEvidence(api.ledger.sql, { ...by, operationId: id, providerRef: `c_${id}`, source: "webhook" });
    const problem = await refusal(id, () =>
      reviewer.review(id, { ...person, decision: "keep", reference: refs[0] ?? "", evidenceNo }),
    );
    expect(problem).toMatchObject({ status: 409, type: "/problems/evidence-moved", evidenceNo: evidenceNo + 1 });
  });

  it("where the operation has moved on, tells its state and who decided", async () => {
    const planned = await send();
    const decide = (id: string, evidenceNo: number) =>
      reviewer.review(id, { ...person, decision: "abandon", evidenceNo });
    expect(await refusal(planned, () => decide(planned, 0))).toMatchObject({
      type: "/problems/not-in-review",
      state: "PLANNED",
    });
    const { id, evidenceNo } = await inReview();
    await decide(id, evidenceNo);
    expect(await refusal(id, () => decide(id, evidenceNo))).toMatchObject({
      state: "SUPERSEDED",
      decidedBy: "person:u-17",
    });
  });

  it("of another tenant, as if there were none", async () => {
    const { id, evidenceNo } = await inReview("a");
    const { key } = await createApiKey(api.ledger, "bravo", "reviewer", ["reviews:write"]);
    const decide = (operationId: string) =>
      client(key).review(operationId, { ...person, decision: "abandon", evidenceNo });
    const foreign = await refusal(id, () => decide(id));
    expect(foreign.status).toBe(404);
    expect(foreign).toEqual(await refusal(id, () => decide(newId())));
  });

  it.each([
    ["keeping with a word on dependants", { decision: "keep", reference: "x", dependants: "release" }, "dependants"],
    ["abandoning a reference", { decision: "abandon", reference: "x" }, "reference"],
    ["found by hand, but what", { decision: "keep", foundByHand: true }, "reference"],
  ] as const)("said only half: %s", async (_name, body, field) => {
    const { id, evidenceNo } = await inReview("a");
    const problem = await refusal(id, () => reviewer.review(id, { ...person, ...body, evidenceNo }));
    expect(problem).toMatchObject({ status: 422, type: "/problems/invalid", errors: [{ field }] });
  });

  it("with a replacement whose intent exists: neither is done", async () => {
    const { id, evidenceNo } = await inReview("a");
    await api.plan({ intentKey: `taken-${id}`, action: "SEND", payload: payload() });
    const replacement = { intentKey: `taken-${id}`, payload: payload() };
    const problem = await refusal(id, () =>
      reviewer.review(id, { ...person, decision: "abandon", evidenceNo, replacement }),
    );
    expect([problem.status, problem.type]).toEqual([409, "/problems/intent-exists"]);
  });

  it("inside the window after an attempt: says when to come back", async () => {
    const windowed = await TestApi.start({ quiescenceMs: 600_000 });
    try {
      const digest = await windowed.upload();
      const planned = await windowed.plan({
        intentKey: "windowed",
        action: "SEND",
        payload: { ...payload(), documents: [{ sha256: digest }] },
      });
      const id = String(planned.body.operationId);
      const evidenceNo = await toReview(id, [], windowed.ledger);
      const answer = await windowed.call("POST", `/v1/operations/${id}/review`, {
        key: windowed.keys.reviewer ?? null,
        body: JSON.stringify({ ...person, decision: "abandon", evidenceNo }),
      });
      expect([answer.status, answer.body]).toMatchObject([409, { type: "/problems/too-early" }]);
      const left = Number(answer.headers.get("retry-after"));
      expect(left).toBe(Math.ceil(Number(answer.body.retryAfterMs) / 1_000));
      expect(left).toBeGreaterThan(500);
      expect(await getOperation(windowed.ledger, "acme", id)).toMatchObject({ state: "NEEDS_REVIEW", evidenceNo });
    } finally {
      await windowed.stop();
    }
  });
});

describe("a VOID in review that an amendment waits for", () => {
  async function waitingOnVoid() {
    const { id } = await confirmed();
    const amendment = await send({ supersedes: { operationId: id } });
    const [row] = await api.ledger.sql<{ operation_id: string }[]>`
      SELECT operation_id FROM signing_operation WHERE target_operation_id = ${id} AND action = 'VOID'`;
    const voidId = row?.operation_id ?? "";
    return { voidId, amendment, evidenceNo: await toReview(voidId, []) };
  }

  it("is not given up without saying what becomes of it; the ticket says so beforehand", async () => {
    const { voidId, amendment, evidenceNo } = await waitingOnVoid();
    const detail = await reviewer.ticket(await ticketOf(voidId, "needs-review"));
    expect(detail.operation).toMatchObject({
      action: "VOID",
      waiting: [{ operationId: amendment, action: "SEND", relation: "void-first" }],
      decisions: [
        { decision: "keep", dependants: [] },
        { decision: "abandon", dependants: ["release", "retire", "retry"] },
      ],
    });
    const abandon = (more: { dependants?: "release" } = {}) =>
      reviewer.review(voidId, { ...person, decision: "abandon", evidenceNo, ...more });
    expect(await refusal(voidId, abandon)).toMatchObject({
      status: 409,
      type: "/problems/dependants-undecided",
      waiting: [amendment],
    });
    expect(await abandon({ dependants: "release" })).toMatchObject({ operation: { state: "SUPERSEDED" }, planned: [] });
    expect(await reviewer.get(amendment)).toMatchObject({ state: "PLANNED", waitsFor: 0 });
  });

  it("retry: a new VOID goes out, and the amendment waits for that one", async () => {
    const { voidId, amendment, evidenceNo } = await waitingOnVoid();
    const decided = await reviewer.review(voidId, { ...person, decision: "abandon", evidenceNo, dependants: "retry" });
    expect(decided.planned).toHaveLength(1);
    expect(await reviewer.get(amendment)).toMatchObject({ state: "PLANNED", waitsFor: 1 });
  });
});

describe("tickets", () => {
  it("say what each decision would do, and that is what it does: never a VOID for a completed request", async () => {
    const { id, refs, evidenceNo } = await inReview("a", "b", "c");
    await setStatus(id, `c_${id}`, "COMPLETED");
    const { operation } = await reviewer.ticket(await ticketOf(id, "needs-review"));
    expect(operation?.references.map(({ reference }) => reference).sort()).toEqual(refs);
    const meant = operation?.decisions.find(({ reference }) => reference === refs[0]);
    expect(meant).toMatchObject({ decision: "keep", voids: [refs[1]], leftAlone: [refs[2]] });
    const { planned } = await reviewer.review(id, {
      ...person,
      decision: "keep",
      reference: refs[0] ?? "",
      evidenceNo,
    });
    expect(await targetsOf(planned)).toEqual(meant?.voids);
    expect(await ticketOf(id, "needs-review")).toBe("none");
  });

  it.each([
    ["the first", 0, [1]],
    ["the other", 1, [0]],
    ["none", undefined, [0, 1]],
  ])(
    "of a duplicate, %s may be kept; what it announced is planned, and the operation stays what it was",
    async (_name, kept, others) => {
      const { id, ref } = await confirmed();
      await recordEvidence(api.ledger.sql, { ...by, operationId: id, providerRef: `b_${id}`, source: "webhook" });
      const refs = [ref, `b_${id}`];
      const keep = kept === undefined ? null : (refs[kept] ?? null);
      const ticketId = await ticketOf(id, "duplicate");
      const { operation } = await reviewer.ticket(ticketId);
      const meant = operation?.decisions.find((each) => each.reference === keep);
      const { planned } = await reviewer.decideTicket(ticketId, { keep, ...person });
      expect(await targetsOf(planned)).toEqual(others.map((index) => refs[index]));
      expect(meant?.voids.toSorted()).toEqual(others.map((index) => refs[index]));
      expect(await reviewer.get(id)).toMatchObject({ state: "CONFIRMED", providerRef: ref });
    },
  );

  it("of a duplicate can't be decided for a reference that it hasn't, nor closed; other kinds can't be decided", async () => {
    const { id } = await confirmed();
    await recordEvidence(api.ledger.sql, { ...by, operationId: id, providerRef: `b_${id}`, source: "webhook" });
    const ticketId = await ticketOf(id, "duplicate");
    const unknown = await refusal(id, () => reviewer.decideTicket(ticketId, { keep: "sr_nowhere", ...person }));
    expect(unknown).toMatchObject({ status: 422, type: "/problems/reference-unknown" });
    const closing = { who: "u-17", resolution: "ignored" };
    expect((await refusal(id, () => reviewer.resolveTicket(ticketId, closing))).type).toBe(
      "/problems/ticket-is-decided",
    );
    const subjectId = newId();
    await openTicket(api.ledger.sql, {
      tenantId: "acme",
      kind: "quarantine",
      subjectKind: "inbox",
      subjectId,
      reason: "x",
    });
    const quarantine = await ticketOf(subjectId, "quarantine");
    const other = await refusal(id, () => reviewer.decideTicket(quarantine, { keep: null, ...person }));
    expect(other).toMatchObject({ status: 422, type: "/problems/ticket-unsuitable" });
    await reviewer.resolveTicket(quarantine, closing);
    const again = await refusal(id, () => reviewer.resolveTicket(quarantine, closing));
    expect(again).toMatchObject({ status: 409, type: "/problems/ticket-closed" });
    expect(await reviewer.ticket(quarantine)).toMatchObject({
      resolvedBy: "person:u-17",
      resolution: "ignored",
      operation: null,
    });
  });

  it("of a review can be closed only once its operation has left NEEDS_REVIEW", async () => {
    const { id, evidenceNo } = await inReview();
    const closing = { who: "u-17", resolution: "decided elsewhere" };
    const ticketId = await ticketOf(id, "needs-review");
    expect((await refusal(id, () => reviewer.resolveTicket(ticketId, closing))).type).toBe(
      "/problems/ticket-is-decided",
    );
    await reviewer.review(id, { ...person, decision: "abandon", evidenceNo });
    await openTicket(api.ledger.sql, {
      tenantId: "acme",
      kind: "needs-review",
      subjectKind: "operation",
      subjectId: id,
      reason: "late",
    });
    await reviewer.resolveTicket(await ticketOf(id, "needs-review"), closing);
  });

  it("need a resolution without addresses", async () => {
    const { id } = await confirmed();
    await openTicket(api.ledger.sql, {
      tenantId: "acme",
      kind: "aged",
      subjectKind: "operation",
      subjectId: id,
      reason: "x",
    });
    const ticketId = await ticketOf(id, "aged");
    for (const [resolution, code] of [
      [" ", "reason-missing"],
      ["anna@example.com knows", "reason-unsuitable"],
    ] as const) {
      const problem = await refusal(id, () => reviewer.resolveTicket(ticketId, { who: "u-17", resolution }));
      expect(problem).toMatchObject({ status: 422, type: `/problems/${code}` });
    }
  });

  it("are listed page by page, each once, open, closed or all, and only the tenant's own", async () => {
    const subjects = Array.from({ length: 5 }, () => newId());
    for (const subjectId of subjects) {
      await openTicket(api.ledger.sql, {
        tenantId: "acme",
        kind: "dead-letter",
        subjectKind: "inbox",
        subjectId,
        reason: "x",
      });
    }
    for (const subjectId of subjects.slice(0, 2)) {
      await resolveTicket(api.ledger, "acme", await ticketOf(subjectId, "dead-letter"), "person:u-1", "done");
    }
    const listed = async (status: "open" | "closed" | "all", from = reviewer): Promise<string[]> => {
      const found: string[] = [];
      for await (const ticket of from.tickets({ status, kind: "dead-letter", limit: 2 })) found.push(ticket.subjectId);
      return found;
    };
    expect((await listed("open")).sort()).toEqual(subjects.slice(2).sort());
    expect(await listed("closed")).toEqual([subjects[1], subjects[0]]);
    expect((await listed("all")).sort()).toEqual([...subjects].sort());
    expect(await listed("all", client(api.keys.bravo))).toEqual([]);
  });
});

describe("who may see and do what", () => {
  it("references are shown with an operation only to a key that may decide; guards that worked to every reader", async () => {
    const { id, refs } = await inReview("a", "b");
    await recordNearMiss(api.ledger, { ...by, operationId: id, kind: "woke-after-lease", attemptNo: 1 });
    const seen = await reviewer.get(id);
    expect(seen.references?.map(({ reference }) => reference).sort()).toEqual(refs);
    expect(seen.nearMisses).toMatchObject([{ kind: "woke-after-lease", attempt: 1 }]);
    const reader = await client(api.keys.reader).get(id);
    expect("references" in reader).toBe(false);
    expect(reader.because.join(" ")).toContain("near miss");
  });

  it.each([
    ["a producer's key", "acme"],
    ["a reader's key", "reader"],
  ])("%s decides, closes, holds and rules nothing", async (_name, key) => {
    const { id, evidenceNo } = await inReview("a");
    const mine = client(api.keys[key]);
    const ticketId = await ticketOf(id, "needs-review");
    for (const attempt of [
      () => mine.review(id, { ...person, decision: "abandon", evidenceNo }),
      () => mine.resolveTicket(ticketId, { who: "u-1", resolution: "x" }),
      () => mine.decideTicket(ticketId, { keep: null, ...person }),
      () => mine.hold(person),
      () => mine.releaseHold(randomUUID(), "u-1"),
      () => mine.writePolicy({ ...person, policy: "accept-replay-risk", action: "SEND" }),
      () => mine.revokePolicy(randomUUID(), "u-1"),
    ]) {
      expect((await refusal(id, attempt)).status).toBe(403);
    }
  });

  it("neither do a reviewer's key rule the tenant, nor an admin's key decide", async () => {
    const { id, evidenceNo } = await inReview("a");
    expect((await refusal(id, () => reviewer.hold(person))).status).toBe(403);
    const decide = () => admin.review(id, { ...person, decision: "abandon", evidenceNo });
    expect((await refusal(id, decide)).status).toBe(403);
  });
});

describe("holds and policies through the client", () => {
  it("a hold is for a connection that exists, has a reason, is listed and released once", async () => {
    const { holdId } = await admin.hold({ ...person, connection: "main", action: "VOID", minutes: 5 });
    expect(await admin.holds()).toMatchObject([{ holdId, connection: "main", action: "VOID", heldBy: "u-17" }]);
    expect(await client(api.keys.bravo).holds()).toEqual([]);
    await admin.releaseHold(holdId, "u-18");
    await expect(admin.releaseHold(holdId, "u-18")).rejects.toMatchObject({ problem: { type: "/problems/hold-over" } });
    await expect(admin.hold({ ...person, connection: "nowhere" })).rejects.toMatchObject({ status: 404 });
    await expect(admin.hold({ who: "u-17", why: " " })).rejects.toMatchObject({
      problem: { type: "/problems/reason-missing" },
    });
    expect(await admin.holds()).toEqual([]);
  });

  it("a policy is in force until it is revoked; another tenant's can't be", async () => {
    const { policyId } = await admin.writePolicy({ ...person, policy: "accept-duplicate-and-void", action: "SEND" });
    expect(await admin.policies()).toMatchObject([{ policyId, writtenBy: "u-17", connection: null }]);
    const { key } = await createApiKey(api.ledger, "bravo", "admin", ["tenant:admin"]);
    await expect(client(key).revokePolicy(policyId, "u-1")).rejects.toMatchObject({ status: 404 });
    await admin.revokePolicy(policyId, "u-17");
    expect(await admin.policies()).toEqual([]);
    await expect(admin.revokePolicy(policyId, "u-17")).rejects.toMatchObject({ status: 404 });
  });
});

it("a stored document comes back as it was, to its own tenant only", async () => {
  const bytes = await reviewer.getDocument(sha256);
  expect(Buffer.from(bytes).toString()).toBe("%PDF-1.4 a contract");
  await expect(client(api.keys.charlie).getDocument(sha256)).rejects.toMatchObject({ status: 404 });
});
