import type { LookupResult, ObservationKind, ProviderStatus } from "@countersign/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide } from "./decide.js";
import type { Capabilities, Clock, EvidenceFound, KnownReference } from "./verdict.js";

const able: Capabilities = {
  canLookUp: true,
  mayProveAbsence: true,
  webhookEvidence: true,
  secondStep: false,
  replay: "no",
  replayWithinMs: 0,
};
const bare: Capabilities = { ...able, canLookUp: false, mayProveAbsence: false };
const keyed: Capabilities = { ...bare, replay: "safe", replayWithinMs: 10_000 };
const after: Clock = {
  sinceQuietMs: 1_000,
  sinceFirstAttemptMs: 2_000,
  quiescenceMs: 900,
  lookupLagMs: 100,
  eventWaitMs: 500,
  pollMs: 7_000,
};
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
  superseded: false,
  stageOnly: false,
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
    ["a draft, inside the window", send(lookup(found("draft"))), able, inside, "wait draft-found-inside-window"],
    [
      "a draft whose second step may be repeated",
      send(lookup(found("staged"))),
      { ...able, secondStep: true },
      inside,
      "continue draft-continued",
    ],
    [
      "a draft of a superseded SEND is never continued",
      send({ ...lookup(found("staged")), superseded: true }),
      { ...able, secondStep: true },
      after,
      "review draft-of-superseded",
    ],
    [
      "staged, as the producer asked",
      send({ ...lookup(found("staged")), stageOnly: true }),
      able,
      inside,
      "confirm found-staged-as-asked",
    ],
    ["a discarded draft", send(lookup(found("discarded"))), able, after, "review draft-discarded"],
    ["two drafts", send(lookup(found("staged", "staged"))), able, after, "review more-than-one-draft"],
    ["a draft beside a sent one", send(lookup(found("staged", "sent"))), able, after, "confirm found-by-lookup"],
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
    ["no path, inside the wait for webhooks", send({ lookup: undefined }), bare, after, "wait waiting-for-webhook"],
    [
      "no path, nothing came",
      send({ lookup: undefined }),
      bare,
      { ...after, sinceQuietMs: 1_400 },
      "review unprovable",
    ],
    [
      "none, past the lookup's own retention: an empty answer proves nothing",
      send(),
      { ...able, lookupRetentionMs: 2_000 },
      after,
      "review lookup-retention-passed",
    ],
    ["a safe replay waits for the window", send({ lookup: undefined }), keyed, inside, "wait replay-after-quiescence"],
    ["a safe replay", send({ lookup: undefined }), keyed, after, "replay replay-safe"],
    [
      "a replay whose risk a policy accepts",
      send({ lookup: undefined }),
      { ...keyed, replay: "accepted-risk" },
      after,
      "replay replay-by-policy",
    ],
    [
      "a replay that would arrive past the key's retention",
      send({ lookup: undefined }),
      { ...keyed, replayWithinMs: 2_000 },
      { ...after, sinceQuietMs: 1_400 },
      "review unprovable",
    ],
    [
      "a superseded operation is never replayed",
      send({ lookup: undefined, superseded: true }),
      keyed,
      { ...after, sinceQuietMs: 1_400 },
      "review unprovable",
    ],
    [
      "what shows a request is never replayed",
      send({ lookup: undefined, references: [reference("queued")], referencesSeen: 1 }),
      keyed,
      { ...after, sinceQuietMs: 1_400 },
      "review unprovable",
    ],
    [
      "key reused, and nothing can be asked",
      send({ lookup: undefined, lastObservation: { kind: "conflict" } }),
      keyed,
      after,
      "review key-reused-with-another-body",
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
    ["a staged one that is gone", onTarget(found("discarded")), after, "confirm target-is-discarded ours"],
  ] as const)("%s", (_name, evidence, clock, verdict) => {
    const result = decide(evidence, able, clock);
    expect(`${result.kind} ${result.reason} ${"cause" in result ? (result.cause ?? "") : ""}`).toBe(verdict);
  });
});

describe("VOID where nothing can be read", () => {
  it.each([
    ["an attempt in doubt", { openAttempts: 1 }, "wait waiting-for-webhook"],
    ["refused as already over", { lastObservation: { kind: "conflict" } }, "review void-refused-and-unreadable"],
    ["declined", { openAttempts: 0, lastObservation: { kind: "declined" } }, "closed every-attempt-closed"],
  ] as const)("%s", (_name, change, verdict) => {
    const { kind, reason } = decide(onTarget(failed, { lookup: undefined, ...change }), bare, after);
    expect(`${kind} ${reason}`).toBe(verdict);
  });
});

describe("RESEND", () => {
  const resend = (change: Partial<EvidenceFound>): EvidenceFound =>
    send({ action: "RESEND", targetRef: "sr_1", lookup: undefined, ...change });
  const refused = (result: LookupResult) =>
    resend({ lastObservation: { kind: "conflict" }, lookup: { by: "reference", result } });
  it.each([
    ["an attempt in doubt leaves no trace", resend({}), inside, "wait waiting-for-quiescence"],
    ["nobody can know", resend({}), after, "review unprovable"],
    [
      "declined",
      resend({ openAttempts: 0, lastObservation: { kind: "declined" } }),
      inside,
      "closed every-attempt-closed",
    ],
    ["the target is completed", refused(found("completed")), after, "review target-completed"],
    ["the target is void", refused(found("withdrawn")), after, "review target-withdrawn"],
    ["the target is live all the same", refused(found("viewed")), after, "review resend-refused-but-target-live"],
    ["the target can't be read now", refused(failed), after, "wait lookup-failed"],
  ] as const)("%s", (_name, evidence, clock, verdict) => {
    const { kind, reason } = decide(evidence, bare, clock);
    expect(`${kind} ${reason}`).toBe(verdict);
  });
});

describe("FINALIZE", () => {
  const finalize = (result: LookupResult, openAttempts = 0): EvidenceFound =>
    onTarget(result, { action: "FINALIZE", openAttempts, lastObservation: { kind: "not-yet" } });
  it.each([
    ["not complete", finalize(found("viewed")), "wait target-not-complete"],
    ["complete", finalize(found("completed")), "closed target-completed"],
    ["complete, an attempt in doubt: reading is repeated", finalize(found("completed"), 1), "replay target-completed"],
    ["declined by a signer", finalize(found("declined")), "review target-declined"],
    ["void", finalize(found("withdrawn")), "review target-withdrawn"],
    ["expired", finalize(found("expired")), "review target-expired"],
    ["not found", finalize({ kind: "not-found", ms: 1 }), "review target-not-found"],
    ["can't be read now", finalize(failed), "wait lookup-failed"],
  ] as const)("%s", (_name, evidence, verdict) => {
    const result = decide(evidence, able, after);
    expect(`${result.kind} ${result.reason}`).toBe(verdict);
    if (result.reason === "target-not-complete") expect(result).toMatchObject({ retryAfterMs: after.pollMs });
  });
});

const statuses: ProviderStatus[] = [
  "discarded",
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
    by: fc.constantFrom<("reference" | "metadata" | "list")[]>("reference", "metadata", "list"),
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
    action: fc.constantFrom<EvidenceFound["action"][]>("SEND", "VOID", "RESEND", "FINALIZE"),
    references: fc.uniqueArray(anyReference, { maxLength: 3, selector: (known) => known.ref }),
    openAttempts: fc.integer({ min: 0, max: 2 }),
    lastObservation: fc
      .constantFrom<ObservationKind[]>("ambiguous", "refused", "declined", "conflict", "not-sent")
      .map((kind) => ({ kind })),
    lookup: anyLookup,
    superseded: fc.boolean(),
    stageOnly: fc.boolean(),
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
const anyCapabilities: fc.Arbitrary<Capabilities> = fc.record({
  canLookUp: fc.boolean(),
  mayProveAbsence: fc.boolean(),
  webhookEvidence: fc.boolean(),
  secondStep: fc.boolean(),
  replay: fc.constantFrom<Capabilities["replay"][]>("safe", "accepted-risk", "no"),
  replayWithinMs: fc.integer({ min: 0, max: 9_000 }),
});
const anyClock = fc
  .record({ sinceQuietMs: fc.integer({ min: -2_000, max: 5_000 }), before: fc.integer({ min: 0, max: 5_000 }) })
  .map(
    ({ sinceQuietMs, before }): Clock => ({
      ...after,
      sinceQuietMs,
      sinceFirstAttemptMs: Math.max(0, sinceQuietMs) + before,
    }),
  );

/** Verdicts after which a submit worker may send. */
const sendsAgain = new Set(["absent", "closed", "replay", "continue"]);

/** Reasons for a review that contradict each other or the request: no further evidence settles them by itself. */
const contradictions = new Set([
  "more-than-one-match",
  "key-reused-with-another-body",
  "key-reused-but-nothing-found",
  "target-completed",
  "target-declined",
  "void-refused-but-target-live",
]);

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

  it("nothing is sent again without evidence: a look, a closed record, a safe replay after the window, or a draft", () => {
    fc.assert(
      fc.property(anyEvidence, anyCapabilities, anyClock, (evidence, capabilities, clock) => {
        const verdict = decide(evidence, capabilities, clock);
        if (!sendsAgain.has(verdict.kind)) return;
        if (verdict.kind === "closed") expect(evidence.openAttempts).toBe(0);
        if (verdict.kind === "continue") {
          expect(evidence.superseded).toBe(false);
          expect(evidence.lookup?.result.kind).toBe("found");
        }
        if (verdict.kind === "replay" && evidence.action !== "FINALIZE") {
          expect(capabilities.replay).not.toBe("no");
          expect(evidence.superseded).toBe(false);
          expect(clock.sinceQuietMs).toBeGreaterThanOrEqual(clock.quiescenceMs);
          expect(clock.sinceFirstAttemptMs).toBeLessThan(capabilities.replayWithinMs);
        }
        if (evidence.action === "SEND" && verdict.kind !== "continue") expect(evidence.references).toHaveLength(0);
      }),
      { numRuns },
    );
  });

  it("with no evidence at all, nothing is confirmed and nothing sent again", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<EvidenceFound["action"][]>("SEND", "VOID", "RESEND"),
        anyCapabilities,
        anyClock,
        (action, capabilities, clock) => {
          const nothing = send({ action, lookup: undefined, targetRef: "sr_1" });
          const verdict = decide(nothing, { ...capabilities, replay: "no" }, clock);
          expect(["wait", "review"]).toContain(verdict.kind);
        },
      ),
      { numRuns },
    );
  });

  it("nothing is confirmed without a reference that was seen", () => {
    fc.assert(
      fc.property(anyEvidence, anyCapabilities, anyClock, (evidence, capabilities, clock) => {
        const verdict = decide(evidence, capabilities, clock);
        if (verdict.kind !== "confirm") return;
        const matches = evidence.lookup?.result.kind === "found" ? evidence.lookup.result.matches : [];
        const seen = [
          evidence.targetRef,
          ...evidence.references.map(({ ref }) => ref),
          ...matches.map(({ ref }) => ref),
        ];
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
        const before = decide(evidence, capabilities, clock).reason;
        if (contradictions.has(before)) expect(decide(more, capabilities, clock).kind).not.toBe("confirm");
      }),
      { numRuns },
    );
  });
});
