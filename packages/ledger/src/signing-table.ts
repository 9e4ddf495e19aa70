/** What the provider says of a request, over its life. */
export const signingStatuses = [
  "STAGED",
  "SENT",
  "VIEWED",
  "PARTIALLY_SIGNED",
  "COMPLETED",
  "DECLINED",
  "VOIDED",
  "EXPIRED",
  /** A staged one that was thrown away: nobody was ever mailed. */
  "DISCARDED",
] as const;
export type SigningStatus = (typeof signingStatuses)[number];

/** Requests in these are not over: the provider is asked about them from time to time. */
export const openStatuses = ["STAGED", "SENT", "VIEWED", "PARTIALLY_SIGNED"] as const satisfies SigningStatus[];

/** Nothing the provider says later may contradict these without a person. */
export const endStatuses = [
  "COMPLETED",
  "DECLINED",
  "VOIDED",
  "EXPIRED",
  "DISCARDED",
] as const satisfies SigningStatus[];

/**
 * What a story does to what stood before: `applied` moves the row, `no-op` is the same or an older one, `conflict` is
 * another end than the one that stands: a person's.
 */
export type StoryEffect = "applied" | "no-op" | "conflict";

const moves = (...to: SigningStatus[]) => to;

/** From a status, where a story may move it. */
const movesTo: Record<SigningStatus, readonly SigningStatus[]> = {
  STAGED: moves("SENT", "VIEWED", "PARTIALLY_SIGNED", ...endStatuses),
  SENT: moves("VIEWED", "PARTIALLY_SIGNED", "COMPLETED", "DECLINED", "VOIDED", "EXPIRED"),
  VIEWED: moves("PARTIALLY_SIGNED", "COMPLETED", "DECLINED", "VOIDED", "EXPIRED"),
  PARTIALLY_SIGNED: moves("COMPLETED", "DECLINED", "VOIDED", "EXPIRED"),
  COMPLETED: [],
  DECLINED: [],
  VOIDED: [],
  EXPIRED: [],
  DISCARDED: [],
};

/** What contradicts a status: another end, and for what was never sent every story of a sent one, and the reverse. */
const contradicts: Record<SigningStatus, readonly SigningStatus[]> = {
  STAGED: [],
  SENT: ["DISCARDED"],
  VIEWED: ["DISCARDED"],
  PARTIALLY_SIGNED: ["DISCARDED"],
  COMPLETED: ["DECLINED", "VOIDED", "EXPIRED", "DISCARDED"],
  DECLINED: ["COMPLETED", "VOIDED", "EXPIRED", "DISCARDED"],
  VOIDED: ["COMPLETED", "DECLINED", "EXPIRED", "DISCARDED"],
  EXPIRED: ["COMPLETED", "DECLINED", "VOIDED", "DISCARDED"],
  DISCARDED: ["SENT", "VIEWED", "PARTIALLY_SIGNED", "COMPLETED", "DECLINED", "VOIDED", "EXPIRED"],
};

/**
 * The one table of states and stories, events and polled states alike. The condition of the UPDATE comes from it, and so do
 * the meaning of zero rows, the dry run of a replay, and the table in docs/webhooks.md. Pure.
 */
export function effectOf(current: SigningStatus, story: SigningStatus): StoryEffect {
  if (movesTo[current].includes(story)) return "applied";
  return contradicts[current].includes(story) ? "conflict" : "no-op";
}

/** From which statuses a story may move the row: the condition of its UPDATE. */
export const movesFrom = (story: SigningStatus): SigningStatus[] =>
  signingStatuses.filter((current) => effectOf(current, story) === "applied");
