import { describe, expect, it } from "vitest";
import { auditDemo, isClean } from "./audit.js";
import type { OperationRow } from "./operations.js";

const send = (operationId: string, change: Partial<OperationRow> = {}): OperationRow => ({
  tenantId: "acme",
  operationId,
  action: "SEND",
  state: "CONFIRMED",
  reason: "accepted",
  attemptNo: 1,
  waiting: false,
  targetOperationId: null,
  supersededBy: null,
  wasUnknown: false,
  settledBy: null,
  ...change,
});
const voidOf = (targetOperationId: string, change: Partial<OperationRow> = {}): OperationRow =>
  send(`void-${targetOperationId}`, {
    action: "VOID",
    targetOperationId,
    wasUnknown: true,
    settledBy: "lookup",
    ...change,
  });

const held = (requests: Record<string, string[]>, untagged = 0) => ({
  operations: Object.entries(requests).map(([operationId, statuses]) => ({
    tenant: "acme",
    operationId,
    arrivals: statuses.length,
    requests: statuses.map((status) => ({ status })),
  })),
  untagged: { requests: untagged },
});

const kinds = (operations: OperationRow[], provider: ReturnType<typeof held>) =>
  auditDemo(operations, provider).findings.map(({ kind, operationId }) => `${kind} ${operationId}`);

describe("the audit", () => {
  it("finds nothing where each intent has one request, or rightly ended without", () => {
    const operations = [
      send("a"),
      send("b", { supersededBy: "c" }),
      voidOf("b"),
      send("c"),
      send("refused", { state: "TERMINAL_FAILED" }),
      send("absent", { state: "SUPERSEDED", wasUnknown: true, settledBy: "lookup" }),
    ];
    const { audit, findings } = auditDemo(
      operations,
      held({ a: ["signed"], b: ["withdrawn"], c: ["sent"], refused: [] }),
    );
    expect(findings).toEqual([]);
    expect(isClean(audit)).toBe(true);
    expect(audit).toMatchObject({ intents: 5, providerRequests: 3 });
  });

  it("does not count what was retired before it was sent, unless the provider has it", () => {
    const retired = send("a", { state: "SUPERSEDED", attemptNo: 0 });
    expect(auditDemo([retired], held({})).audit).toMatchObject({ intents: 0, missing: 0 });
    const { audit, findings } = auditDemo([retired], held({ a: ["sent"] }));
    expect(audit.intents).toBe(1);
    expect(findings).toMatchObject([{ kind: "wrong-void", operationId: "a" }]);
  });

  it("finds two requests for one operation, and requests nobody stands for", () => {
    expect(kinds([send("a")], held({ a: ["sent", "withdrawn"], b: ["sent"] }))).toEqual([
      "duplicate b",
      "duplicate a",
      "wrong-void a",
    ]);
    expect(auditDemo([], held({}, 2)).audit).toMatchObject({ duplicates: 2, providerRequests: 2 });
  });

  it.each(["CONFIRMED", "PLANNED", "UNKNOWN", "NEEDS_REVIEW"] as const)(
    "misses a request that is not there: %s",
    (state) => {
      expect(kinds([send("a", { state })], held({}))).toEqual(["missing a"]);
      expect(kinds([send("a", { state })], held({ a: ["staged", "discarded"] }))).toEqual(["missing a"]);
    },
  );

  it("finds a withdrawal that no confirmed VOID of ours stands for", () => {
    expect(kinds([send("a")], held({ a: ["withdrawn"] }))).toEqual(["wrong-void a"]);
    expect(kinds([send("a"), voidOf("a", { state: "UNKNOWN" })], held({ a: ["withdrawn"] }))).toEqual(["wrong-void a"]);
  });

  it("finds a live request that should be void", () => {
    expect(kinds([send("a"), voidOf("a")], held({ a: ["viewed"] }))).toEqual(["wrong-void a"]);
    expect(kinds([send("a", { supersededBy: "b" })], held({ a: ["sent"] }))).toEqual(["wrong-void a"]);
    expect(kinds([send("a", { state: "TERMINAL_FAILED" })], held({ a: ["sent"] }))).toEqual(["wrong-void a"]);
  });

  it("never mixes tenants up", () => {
    const theirs = { ...send("a"), tenantId: "bravo" };
    expect(auditDemo([send("a"), theirs], held({ a: ["sent"] })).findings).toMatchObject([
      { kind: "missing", tenantId: "bravo" },
    ]);
  });

  it("counts each intent that was UNKNOWN once, by its last settling, and no VOIDs", () => {
    const operations = [
      send("a", { wasUnknown: true, settledBy: "webhook" }),
      send("b", { wasUnknown: true, settledBy: "lateAnswer" }),
      send("c", { wasUnknown: true, settledBy: "declined" }),
      send("d", { wasUnknown: true, settledBy: "review", state: "NEEDS_REVIEW" }),
      send("e"),
      voidOf("e"),
    ];
    const { audit } = auditDemo(
      operations,
      held({ a: ["sent"], b: ["sent"], c: ["sent"], d: ["sent"], e: ["withdrawn"] }),
    );
    expect(audit).toMatchObject({
      throughUnknown: 4,
      settledBy: { lookup: 0, webhook: 1, lateAnswer: 1, declined: 1, review: 1 },
      states: { CONFIRMED: 5, NEEDS_REVIEW: 1 },
    });
  });
});
