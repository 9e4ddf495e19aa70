import type { LookupResult, ObservationKind, ProviderStatus } from "@countersign/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Capabilities, type Clock, decide, type EvidenceFound, type KnownReference } from "./decide.js";

const able: Capabilities = { canLookUp: true, mayProveAbsence: true };
const after: Clock = { sinceQuietMs: 1_000, quiescenceMs: 900, lookupLagMs: 100, eventWaitMs: 500 };
const inside: Clock = { ...after, sinceQuietMs: 899 };
const found = (...statuses: ProviderStatus[]): LookupResult => ({
  kind: "found",
  matches: statuses.map((status, index) => ({ ref: `sr_${index + 1}`, status })),
  pages: 1,
  ms: 1,
});
const failed: LookupResult = { kind: "failed", cause: "timeout", ms: 1 };
const reference = (source: string, role: KnownReference["role"] = "evidence", ref = "sr_1"): KnownReference => ({
  ref,
  role,
  source,
});

const send = (change: Partial<EvidenceFound> = {}): EvidenceFound => ({
  action: "SEND",
  references: [],
  openAttempts: 1,
  attemptNo: 1,
  referencesSeen: 0,
  lastObservation: { kind: "ambiguous" },
  lookup: { by: "metadata", result: found() },
  targetRef: undefined,
  ...change,
});
const onTarget = (result: LookupResult, change: Partial<EvidenceFound> = {}): EvidenceFound => ({
  ...send({ action: "VOID", targetRef: "sr_1", lookup: { by: "reference", result }, ...change }),
});
const lookup = (result: LookupResult): Partial<EvidenceFound> => ({ lookup: { by: "metadata", result } });

describe("SEND", () => {
  it.each([
    // what was found                                          capabilities                           clock    verdict
    ["one match, sent", send(lookup(found("sent"))), able, after, "confirm found-by-lookup"],
    ["one match, inside the window", send(lookup(found("viewed"))), able, inside, "confirm found-by-lookup"],
    ["one match, withdrawn", send(lookup(found("withdrawn"))), able, after, "confirm found-by-lookup"],
    ["one match, declined by a signer", send(lookup(found("declined"))), able, after, "confirm found-by-lookup"],
    ["one match, expired", send(lookup(found("expired"))), able, after, "confirm found-by-lookup"],
    ["a draft is not a send", send(lookup(found("draft"))), able, after, "review draft-found"],
    ["two matches", send(lookup(found("sent", "sent"))), able, after, "review more-than-one-match"],
    ["none, after the window", send(), able, after, "absent absence-proven"],
    ["none, inside the window", send(), able, inside, "wait absence-not-proven"],
    ["none, inside the lease", send(), able, { ...after, sinceQuietMs: -5_000 }, "wait absence-not-proven"],
    ["none, lookup not verified here", send(), { ...able, mayProveAbsence: false }, after, "wait lookup-not-verified"],
    [
      "found, lookup not verified here",
      send(lookup(found("sent"))),
      { ...able, mayProveAbsence: false },
      after,
      "confirm found-by-lookup",
    ],
    ["lookup failed", send(lookup(failed)), able, after, "wait lookup-failed"],
    [
      "key reused with another body, one match",
      send({ ...lookup(found("sent")), lastObservation: { kind: "conflict" } }),
      able,
      after,
      "review key-reused-with-another-body",
    ],
    [
      "key reused, nothing found",
      send({ lastObservation: { kind: "conflict" } }),
      able,
      after,
      "review key-reused-but-nothing-found",
    ],
    [
      "a webhook with our id",
      send({ references: [reference("webhook")], referencesSeen: 1, lookup: undefined }),
      able,
      inside,
      "confirm evidence-by-webhook",
    ],
    [
      "a late 2xx",
      send({ references: [reference("late-answer")], referencesSeen: 1, lookup: undefined }),
      able,
      inside,
      "confirm late-answer",
    ],
    [
      "a webhook's request and another one found",
      send({ references: [reference("webhook", "evidence", "sr_9")], referencesSeen: 1, ...lookup(found("sent")) }),
      able,
      after,
      "review more-than-one-match",
    ],
    [
      "queued, found sent",
      send({
        references: [reference("queued")],
        referencesSeen: 1,
        lookup: { by: "reference", result: found("sent") },
      }),
      able,
      after,
      "confirm found-by-reference",
    ],
    [
      "queued, not visible inside the lag",
      send({
        references: [reference("queued")],
        referencesSeen: 1,
        lookup: { by: "reference", result: { kind: "not-found", ms: 1 } },
      }),
      able,
      { ...after, sinceQuietMs: 50 },
      "wait reference-not-visible-yet",
    ],
    [
      "queued, not found after the lag: never absence",
      send({
        references: [reference("queued")],
        referencesSeen: 1,
        lookup: { by: "reference", result: { kind: "not-found", ms: 1 } },
      }),
      able,
      after,
      "review reference-not-found",
    ],
    [
      "every attempt declined: no lookup needed",
      send({ openAttempts: 0, lookup: undefined, lastObservation: { kind: "declined" } }),
      able,
      inside,
      "closed every-attempt-closed",
    ],
    [
      "no path, inside the wait for webhooks",
      send({ lookup: undefined }),
      { canLookUp: false, mayProveAbsence: false },
      after,
      "wait waiting-for-webhook",
    ],
    [
      "no path, nothing came",
      send({ lookup: undefined }),
      { canLookUp: false, mayProveAbsence: false },
      { ...after, sinceQuietMs: 1_400 },
      "review unprovable",
    ],
  ] as const)("%s", (_name, evidence, capabilities, clock, verdict) => {
    const { kind, reason } = decide(evidence, capabilities, clock);
    expect(`${kind} ${reason}`).toBe(verdict);
  });
});

describe("VOID, settled by its target", () => {
  it.each([
    ["withdrawn after our ambiguous attempt", onTarget(found("withdrawn")), after, "confirm target-is-void ours"],
    [
      "withdrawn although ours was refused as already over",
      onTarget(found("withdrawn"), { lastObservation: { kind: "conflict" } }),
      after,
      "confirm target-is-void already-over",
    ],
    ["expired", onTarget(found("expired")), after, "confirm target-expired already-over"],
    ["completed meanwhile", onTarget(found("completed")), after, "review target-completed "],
    ["declined meanwhile", onTarget(found("declined")), after, "review target-declined "],
    ["still live inside the window", onTarget(found("sent")), inside, "wait absence-not-proven "],
    ["still live after the window", onTarget(found("viewed")), after, "absent absence-proven "],
    [
      "refused as invalid, yet live",
      onTarget(found("sent"), { lastObservation: { kind: "conflict" } }),
      after,
      "review void-refused-but-target-live ",
    ],
    [
      "target not found, inside the lag",
      onTarget({ kind: "not-found", ms: 1 }),
      { ...after, sinceQuietMs: 1 },
      "wait target-not-visible-yet ",
    ],
    ["target not found", onTarget({ kind: "not-found", ms: 1 }), after, "review target-not-found "],
    ["lookup failed", onTarget(failed), after, "wait lookup-failed "],
  ] as const)("%s", (_name, evidence, clock, verdict) => {
    const result = decide(evidence, able, clock);
    expect(`${result.kind} ${result.reason} ${"cause" in result ? (result.cause ?? "") : ""}`).toBe(verdict);
  });
});

const statuses: ProviderStatus[] = [
  "draft",
  "staged",
  "sent",
  "viewed",
  "partially-signed",
  "completed",
  "declined",
  "withdrawn",
  "expired",
];
const anyMatch = fc.record({ ref: fc.constantFrom("sr_1", "sr_2", "sr_3"), status: fc.constantFrom(...statuses) });
const anyReference = fc.record({
  ref: fc.constantFrom("sr_1", "sr_2", "sr_3"),
  role: fc.constantFrom<KnownReference["role"][]>("kept", "extra", "draft", "evidence"),
  source: fc.constantFrom("webhook", "late-answer", "queued", "mid-call", "answer", "lookup"),
});
const anyLookup = fc.oneof(
  fc.constant(undefined),
  fc.record({
    by: fc.constantFrom<("reference" | "metadata")[]>("reference", "metadata"),
    result: fc.oneof(
      fc
        .uniqueArray(anyMatch, { maxLength: 3, selector: (each) => each.ref })
        .map((matches): LookupResult => ({ kind: "found", matches, pages: 1, ms: 1 })),
      fc.constant<LookupResult>({ kind: "not-found", ms: 1 }),
      fc.constant<LookupResult>(failed),
    ),
  }),
);
const anyEvidence = fc
  .record({
    action: fc.constantFrom<EvidenceFound["action"][]>("SEND", "VOID"),
    references: fc.uniqueArray(anyReference, { maxLength: 3, selector: (known) => known.ref }),
    openAttempts: fc.integer({ min: 0, max: 2 }),
    lastObservation: fc
      .constantFrom<ObservationKind[]>("ambiguous", "refused", "declined", "conflict", "not-sent")
      .map((kind) => ({ kind })),
    lookup: anyLookup,
  })
  .map(
    (parts): EvidenceFound => ({
      ...parts,
      attemptNo: 2,
      referencesSeen: parts.references.length,
      targetRef: "sr_1",
    }),
  );
const numRuns = process.env.COUNTERSIGN_DEEP === "1" ? 200_000 : 3_000;
const anyCapabilities = fc.record({ canLookUp: fc.boolean(), mayProveAbsence: fc.boolean() });
const anyClock = fc.integer({ min: -2_000, max: 5_000 }).map((sinceQuietMs): Clock => ({ ...after, sinceQuietMs }));

describe("whatever the evidence", () => {
  it("absence is never concluded inside the window, without a look, or by a path that may not prove it", () => {
    fc.assert(
      fc.property(anyEvidence, anyCapabilities, anyClock, (evidence, capabilities, clock) => {
        const verdict = decide(evidence, capabilities, clock);
        if (verdict.kind !== "absent") return;
        expect(capabilities.mayProveAbsence).toBe(true);
        expect(clock.sinceQuietMs).toBeGreaterThanOrEqual(clock.quiescenceMs);
        expect(["found", "not-found"]).toContain(evidence.lookup?.result.kind);
        if (evidence.action === "SEND") expect(evidence.references).toHaveLength(0);
      }),
      { numRuns },
    );
  });

  it("nothing is confirmed without a reference that was seen", () => {
    fc.assert(
      fc.property(anyEvidence, anyCapabilities, anyClock, (evidence, capabilities, clock) => {
        const verdict = decide(evidence, capabilities, clock);
        if (verdict.kind !== "confirm") return;
        const matches = evidence.lookup?.result.kind === "found" ? evidence.lookup.result.matches : [];
        const seen = [...evidence.references.map(({ ref }) => ref), ...matches.map(({ ref }) => ref)];
        expect(seen).toContain(verdict.ref);
      }),
      { numRuns },
    );
  });

  it("the verdict does not depend on the order of evidence", () => {
    fc.assert(
      fc.property(anyEvidence, anyCapabilities, anyClock, (evidence, capabilities, clock) => {
        const reversed: EvidenceFound = {
          ...evidence,
          references: [...evidence.references].reverse(),
          lookup:
            evidence.lookup?.result.kind === "found"
              ? {
                  ...evidence.lookup,
                  result: { ...evidence.lookup.result, matches: [...evidence.lookup.result.matches].reverse() },
                }
              : evidence.lookup,
        };
        const [a, b] = [decide(evidence, capabilities, clock), decide(reversed, capabilities, clock)];
        expect(a.kind).toBe(b.kind);
      }),
      { numRuns },
    );
  });

  it("one more reference never turns a conflict into a confirmation", () => {
    fc.assert(
      fc.property(anyEvidence, anyReference, anyCapabilities, anyClock, (evidence, extra, capabilities, clock) => {
        if (decide(evidence, capabilities, clock).kind !== "review") return;
        if (evidence.references.some(({ ref }) => ref === extra.ref)) return;
        const more = {
          ...evidence,
          references: [...evidence.references, extra],
          referencesSeen: evidence.referencesSeen + 1,
        };
        const verdict = decide(more, capabilities, clock);
        // A reference that proves a send may settle what could not be proven; it never overrules a contradiction.
        if (verdict.kind === "confirm")
          expect(["unprovable", "reference-not-found", "draft-found"]).toContain(
            decide(evidence, capabilities, clock).reason,
          );
      }),
      { numRuns },
    );
  });
});
