import { createHash } from "node:crypto";

/** What a delivery of a day is meant to be. */
export type DeliveryKind = "event" | "duplicate" | "unknown-type" | "bad-signature";

export interface DayDelivery {
  kind: DeliveryKind;
  body: string;
}

export interface Day {
  /** References of all requests, and the status in which the day leaves each. */
  ends: ReadonlyMap<string, string>;
  /** Events in the order in which they happened, each once. */
  ordered: readonly DayDelivery[];
  /** The same events shuffled, with repeated ones, unknown types and bad signatures between them. */
  disturbed: readonly DayDelivery[];
}

/** A number in [0, 1) that depends on seed and label only. */
function draw(seed: string, label: string): number {
  return createHash("sha256").update(`${seed}\0${label}`).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Ways that requests go, with their share: a request in the middle of its life when the day ends is no exception. */
const lives: readonly (readonly [share: number, words: readonly string[], end: string])[] = [
  [0.45, ["sent", "viewed", "signed", "completed"], "COMPLETED"],
  [0.1, ["sent", "viewed", "signed", "reminded", "signed", "completed"], "COMPLETED"],
  [0.1, ["sent", "viewed", "declined"], "DECLINED"],
  [0.1, ["sent", "withdrawn"], "VOIDED"],
  [0.05, ["sent", "viewed", "expired"], "EXPIRED"],
  [0.1, ["sent", "viewed"], "VIEWED"],
  [0.05, ["sent", "viewed", "signed"], "PARTIALLY_SIGNED"],
  [0.05, ["sent", "reminded", "reminded"], "SENT"],
];

function lifeOf(at: number): (typeof lives)[number] {
  let sum = 0;
  for (const life of lives) {
    sum += life[0];
    if (at < sum) return life;
  }
  return [1, ["sent"], "SENT"];
}

/** What a sender writes; one event written twice is the same bytes. */
const bodyOf = (id: string, type: string, ref: string, second: number): string =>
  JSON.stringify({
    id,
    type,
    created_at: new Date(Date.UTC(2026, 9, 1) + second * 1_000).toISOString(),
    data: { signing_request_id: ref, document_id: `doc_${ref}`, status: type.split(".")[1] },
  });

/**
 * A day of at least `events` events of one connection. Pure: the same seed gives the same day. 20 % of what is delivered
 * once more is a repetition, 2 % are of unknown types, 1 % carry a bad signature.
 */
export function recordedDay(seed: string, events: number): Day {
  const ends = new Map<string, string>();
  const happened: { at: number; body: string }[] = [];
  for (let request = 0; happened.length < events; request += 1) {
    const ref = `sr_${seed}_${request}`;
    const [, words, end] = lifeOf(draw(seed, `life ${request}`));
    const start = draw(seed, `start ${request}`) * 40_000;
    ends.set(ref, end);
    words.forEach((word, step) => {
      const at = start + step * 5_000;
      const id = `evt_${seed}_${request}_${step}`;
      happened.push({ at, body: bodyOf(id, `signing_request.${word}`, ref, Math.round(at)) });
    });
  }
  const ordered = happened.sort((a, b) => a.at - b.at).map(({ body }): DayDelivery => ({ kind: "event", body }));
  return { ends, ordered, disturbed: disturb(seed, ordered) };
}

function disturb(seed: string, ordered: readonly DayDelivery[]): DayDelivery[] {
  const share = (of: number): number => Math.round(ordered.length * of);
  const pick = (label: string): DayDelivery => {
    const picked = ordered[Math.floor(draw(seed, label) * ordered.length)];
    if (picked === undefined) throw new Error("an empty day");
    return picked;
  };
  const more: DayDelivery[] = [
    ...Array.from({ length: share(0.2) }, (_, n) => ({ ...pick(`again ${n}`), kind: "duplicate" as const })),
    ...Array.from({ length: share(0.02) }, (_, n) => ({
      kind: "unknown-type" as const,
      body: bodyOf(`evt_${seed}_unknown_${n}`, "signing_request.exploded", `sr_${seed}_0`, n),
    })),
    ...Array.from({ length: share(0.01) }, (_, n) => ({
      kind: "bad-signature" as const,
      body: bodyOf(`evt_${seed}_forged_${n}`, "signing_request.completed", `sr_${seed}_${n}`, n),
    })),
  ];
  return [...ordered, ...more]
    .map((delivery, index) => ({ delivery, weight: draw(seed, `order ${index}`) }))
    .sort((a, b) => a.weight - b.weight)
    .map(({ delivery }) => delivery);
}
