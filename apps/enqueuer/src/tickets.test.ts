import { openTicket, resolveTicket } from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { person, ReviewBench } from "./review-bench.js";

let bench: ReviewBench;
beforeAll(async () => {
  bench = await ReviewBench.start();
});
afterAll(async () => {
  await bench.stop();
});

describe("tickets", () => {
  it("say what each decision would do, and that is what it does: never a VOID for a completed request", async () => {
    const { id, refs, evidenceNo } = await bench.inReview("a", "b", "c");
    await bench.api.ledger.sql`
      INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status)
      VALUES ('acme', 'main', ${`c_${id}`}, ${id}, 'COMPLETED')`;
    const { operation } = await bench.reviewer.ticket(await bench.ticketOf(id, "needs-review"));
    expect(operation?.references.map(({ reference }) => reference).sort()).toEqual(refs);
    const meant = operation?.decisions.find(({ reference }) => reference === refs[0]);
    expect(meant).toMatchObject({ decision: "keep", voids: [refs[1]], leftAlone: [refs[2]] });
    const { planned } = await bench.reviewer.review(id, {
      ...person,
      decision: "keep",
      reference: refs[0] ?? "",
      evidenceNo,
    });
    expect(await bench.targetsOf(planned)).toEqual(meant?.voids);
    expect(await bench.ticketOf(id, "needs-review")).toBe("none");
  });

  it.each([
    ["the first", 0, [1]],
    ["the other", 1, [0]],
    ["none", undefined, [0, 1]],
  ])(
    "of a duplicate, %s may be kept; what it announced is planned, and the operation stays what it was",
    async (_name, kept, others) => {
      const { id, refs, ticketId } = await bench.duplicate();
      const keep = kept === undefined ? null : (refs[kept] ?? null);
      const { operation } = await bench.reviewer.ticket(ticketId);
      const meant = operation?.decisions.find((each) => each.reference === keep);
      const { planned } = await bench.reviewer.decideTicket(ticketId, { evidenceNo: 2, keep, ...person });
      expect(await bench.targetsOf(planned)).toEqual(others.map((index) => refs[index]));
      expect(meant?.voids.toSorted()).toEqual(others.map((index) => refs[index]));
      expect(await bench.reviewer.get(id)).toMatchObject({ state: "CONFIRMED", providerRef: refs[0] });
    },
  );

  it("of a duplicate can't be decided for a reference that it hasn't, nor closed; other kinds can't be decided", async () => {
    const { id, ticketId } = await bench.duplicate();
    const unknown = await bench.refusal(id, () =>
      bench.reviewer.decideTicket(ticketId, { evidenceNo: 2, keep: "sr_nowhere", ...person }),
    );
    expect(unknown).toMatchObject({ status: 422, type: "/problems/reference-unknown" });
    const closing = { who: "u-17", resolution: "ignored" };
    expect((await bench.refusal(id, () => bench.reviewer.resolveTicket(ticketId, closing))).type).toBe(
      "/problems/ticket-is-decided",
    );
    const subjectId = newId();
    await openTicket(bench.api.ledger.sql, {
      tenantId: "acme",
      kind: "quarantine",
      subjectKind: "inbox",
      subjectId,
      reason: "x",
    });
    const quarantine = await bench.ticketOf(subjectId, "quarantine");
    const other = await bench.refusal(id, () =>
      bench.reviewer.decideTicket(quarantine, { evidenceNo: 2, keep: null, ...person }),
    );
    expect(other).toMatchObject({ status: 422, type: "/problems/ticket-unsuitable" });
    await bench.reviewer.resolveTicket(quarantine, closing);
    const again = await bench.refusal(id, () => bench.reviewer.resolveTicket(quarantine, closing));
    expect(again).toMatchObject({ status: 409, type: "/problems/ticket-closed" });
    expect(await bench.reviewer.ticket(quarantine)).toMatchObject({
      resolvedBy: "person:u-17",
      resolution: "ignored",
      operation: null,
    });
  });

  it("of a review can be closed only once its operation has left NEEDS_REVIEW", async () => {
    const { id, evidenceNo } = await bench.inReview();
    const closing = { who: "u-17", resolution: "decided elsewhere" };
    const ticketId = await bench.ticketOf(id, "needs-review");
    expect((await bench.refusal(id, () => bench.reviewer.resolveTicket(ticketId, closing))).type).toBe(
      "/problems/ticket-is-decided",
    );
    await bench.reviewer.review(id, { ...person, decision: "abandon", evidenceNo });
    await openTicket(bench.api.ledger.sql, {
      tenantId: "acme",
      kind: "needs-review",
      subjectKind: "operation",
      subjectId: id,
      reason: "late",
    });
    await bench.reviewer.resolveTicket(await bench.ticketOf(id, "needs-review"), closing);
  });

  it("need a resolution without addresses", async () => {
    const { id } = await bench.confirmed();
    await openTicket(bench.api.ledger.sql, {
      tenantId: "acme",
      kind: "aged",
      subjectKind: "operation",
      subjectId: id,
      reason: "x",
    });
    const ticketId = await bench.ticketOf(id, "aged");
    for (const [resolution, code] of [
      [" ", "reason-missing"],
      ["anna@example.com knows", "reason-unsuitable"],
    ] as const) {
      const problem = await bench.refusal(id, () =>
        bench.reviewer.resolveTicket(ticketId, { who: "u-17", resolution }),
      );
      expect(problem).toMatchObject({ status: 422, type: `/problems/${code}` });
    }
  });

  it("are listed page by page, each once, open, closed or all, and only the tenant's own", async () => {
    const subjects = Array.from({ length: 5 }, () => newId());
    for (const subjectId of subjects) {
      await openTicket(bench.api.ledger.sql, {
        tenantId: "acme",
        kind: "dead-letter",
        subjectKind: "inbox",
        subjectId,
        reason: "x",
      });
    }
    for (const subjectId of subjects.slice(0, 2)) {
      await resolveTicket(
        bench.api.ledger,
        "acme",
        await bench.ticketOf(subjectId, "dead-letter"),
        "person:u-1",
        "done",
      );
    }
    const listed = async (status: "open" | "closed" | "all", from = bench.reviewer): Promise<string[]> => {
      const found: string[] = [];
      for await (const ticket of from.tickets({ status, kind: "dead-letter", limit: 2 })) found.push(ticket.subjectId);
      return found;
    };
    expect((await listed("open")).sort()).toEqual(subjects.slice(2).sort());
    expect(await listed("closed")).toEqual([subjects[1], subjects[0]]);
    expect((await listed("all")).sort()).toEqual([...subjects].sort());
    expect(await listed("all", bench.client("bravo"))).toEqual([]);
  });
});
