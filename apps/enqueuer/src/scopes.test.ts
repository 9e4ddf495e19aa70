import { randomUUID } from "node:crypto";
import { createApiKey, recordNearMiss } from "@countersign/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { by, person, ReviewBench } from "./review-bench.js";

let bench: ReviewBench;
beforeAll(async () => {
  bench = await ReviewBench.start();
});
afterAll(async () => {
  await bench.stop();
});

describe("who may see and do what", () => {
  it("references are shown with an operation only to a key that may decide; guards that worked to every reader", async () => {
    const { id, refs } = await bench.inReview("a", "b");
    await recordNearMiss(bench.api.ledger, { ...by, operationId: id, kind: "woke-after-lease", attemptNo: 1 });
    const seen = await bench.reviewer.get(id);
    expect(seen.references?.map(({ reference }) => reference).sort()).toEqual(refs);
    expect(seen.nearMisses).toMatchObject([{ kind: "woke-after-lease", attempt: 1 }]);
    const reader = await bench.client("reader").get(id);
    expect("references" in reader).toBe(false);
    expect(reader.because.join(" ")).toContain("near miss");
  });

  it.each([
    ["a producer's key", "acme"],
    ["a reader's key", "reader"],
  ])("%s decides, closes, holds and rules nothing", async (_name, key) => {
    const { id, evidenceNo } = await bench.inReview("a");
    const mine = bench.client(key);
    const ticketId = await bench.ticketOf(id, "needs-review");
    for (const attempt of [
      () => mine.review(id, { ...person, decision: "abandon", evidenceNo }),
      () => mine.resolveTicket(ticketId, { who: "u-1", resolution: "x" }),
      () => mine.decideTicket(ticketId, { evidenceNo: 2, keep: null, ...person }),
      () => mine.hold(person),
      () => mine.releaseHold(randomUUID(), "u-1"),
      () => mine.writePolicy({ ...person, policy: "accept-replay-risk", action: "SEND" }),
      () => mine.revokePolicy(randomUUID(), "u-1"),
    ]) {
      expect((await bench.refusal(id, attempt)).status).toBe(403);
    }
  });

  it("neither do a reviewer's key rule the tenant, nor an admin's key decide", async () => {
    const { id, evidenceNo } = await bench.inReview("a");
    expect((await bench.refusal(id, () => bench.reviewer.hold(person))).status).toBe(403);
    const decide = () => bench.admin.review(id, { ...person, decision: "abandon", evidenceNo });
    expect((await bench.refusal(id, decide)).status).toBe(403);
  });
});

describe("holds and policies through the client", () => {
  it("a hold is for a connection that exists, has a reason, is listed and released once", async () => {
    const { holdId } = await bench.admin.hold({ ...person, connection: "main", action: "VOID", minutes: 5 });
    expect(await bench.admin.holds()).toMatchObject([{ holdId, connection: "main", action: "VOID", heldBy: "u-17" }]);
    expect(await bench.client("bravo").holds()).toEqual([]);
    await bench.admin.releaseHold(holdId, "u-18");
    await expect(bench.admin.releaseHold(holdId, "u-18")).rejects.toMatchObject({
      problem: { type: "/problems/hold-over" },
    });
    await expect(bench.admin.hold({ ...person, connection: "nowhere" })).rejects.toMatchObject({ status: 404 });
    await expect(bench.admin.hold({ who: "u-17", why: " " })).rejects.toMatchObject({
      problem: { type: "/problems/reason-missing" },
    });
    expect(await bench.admin.holds()).toEqual([]);
  });

  it("a policy is in force until it is revoked; another tenant's can't be", async () => {
    const { policyId } = await bench.admin.writePolicy({
      ...person,
      policy: "accept-duplicate-and-void",
      action: "SEND",
    });
    expect(await bench.admin.policies()).toMatchObject([{ policyId, writtenBy: "u-17", connection: null }]);
    const { key } = await createApiKey(bench.api.ledger, "bravo", "admin", ["tenant:admin"]);
    await expect(bench.client(key).revokePolicy(policyId, "u-1")).rejects.toMatchObject({ status: 404 });
    await bench.admin.revokePolicy(policyId, "u-17");
    expect(await bench.admin.policies()).toEqual([]);
    await expect(bench.admin.revokePolicy(policyId, "u-17")).rejects.toMatchObject({ status: 404 });
  });
});

it("a stored document comes back as it was, to its own tenant only", async () => {
  const sha256 = bench.payload().documents[0]?.sha256 ?? "";
  const bytes = await bench.reviewer.getDocument(sha256);
  expect(Buffer.from(bytes).toString()).toBe("%PDF-1.4 a contract");
  await expect(bench.client("charlie").getDocument(sha256)).rejects.toMatchObject({ status: 404 });
});
