/** Faults of a call that may change something. Each says what was committed, what the key remembers, what is answered. */
export const MUTATION_FAULTS = [
  /** Committed and cached; the socket is destroyed without any byte. */
  "lost-response",
  /** Committed, yet answered with a 5xx: an error releases the key, so a retry makes a second request. */
  "5xx-after-commit",
  /** Nothing committed, answered with a 5xx, key released. */
  "5xx-before-commit",
  /** Nothing committed, never answered, the key stays pending until it is stale. */
  "hang",
  /** Committed and cached, never answered. */
  "hang-after-commit",
  /** Waits until the client has gone, then commits and caches after `slowCommitMs`. */
  "slow-commit",
  /** Destroys the socket at once, then commits and caches after `slowCommitMs`. */
  "late-commit",
  /** Committed and cached; the 2xx declares its full length and is cut in the middle. */
  "truncated-2xx",
  /** Committed and cached; a chunked 2xx without its last chunk. */
  "truncated-chunked",
  /** Committed and cached; a 2xx with an HTML page. */
  "unparsable-2xx",
  /** Committed and cached; a 2xx with `{}`. */
  "empty-2xx",
  /** Nothing committed; this call and every other of the workspace is answered 429 for `retryAfterSeconds`. */
  "429-burst",
  /** Nothing committed, no key row; the socket is destroyed (before the body is read where the script allows it). */
  "reset-before-any-byte",
  /** Nothing committed, key released; the socket is destroyed after the body was read. */
  "reset-before-commit",
  /** Nothing committed, the key stays pending until it is stale; the socket is destroyed. */
  "crash-before-commit",
  /** Committed, but the key stays pending and is then taken over: a retry after that makes a second request. */
  "crash-after-commit",
  /** The provider makes two requests of one call and answers with the first. */
  "duplicate-request",
] as const;

/** Faults that are only ever asked for outright, since they need more than a rate. */
export const SCRIPTED_ONLY_FAULTS = [
  /** Nothing committed, key released (one that holds a success keeps it); answered `status` with `code`, in the error form. */
  "answer",
] as const;

/** Faults of a read: the list, and (hang and fail only) reading by id. */
export const LOOKUP_FAULTS = [
  /** The list hides requests younger than `lookupLagMs`. */
  "lookup-lag",
  /** 503. */
  "lookup-fail",
  /** The list answers 200 with nothing in it, falsely. */
  "lookup-empty",
  /** Never answered. */
  "lookup-hang",
] as const;

/** Faults of an event on its way out. */
export const WEBHOOK_FAULTS = [
  /** Delivered twice, with the same id. */
  "webhook-duplicate",
  /** Held until the next event of the same request has gone out, at most `webhookDelayMs`. */
  "webhook-out-of-order",
  /** Never delivered. */
  "webhook-drop",
  /** Delivered `webhookDelayMs` later. */
  "webhook-delay",
] as const;

export const ALL_FAULTS = [...MUTATION_FAULTS, ...LOOKUP_FAULTS, ...WEBHOOK_FAULTS] as const;

export type MutationFault = (typeof MUTATION_FAULTS)[number] | (typeof SCRIPTED_ONLY_FAULTS)[number];
export type LookupFault = (typeof LOOKUP_FAULTS)[number];
export type WebhookFault = (typeof WEBHOOK_FAULTS)[number];
export type FaultKind = (typeof ALL_FAULTS)[number] | (typeof SCRIPTED_ONLY_FAULTS)[number];

/** Names of the calls a scripted fault may ask for. */
export const ENDPOINTS = [
  "send",
  "instantiate",
  "confirm",
  "discard",
  "generate",
  "update",
  "remind",
  "withdraw",
  "get",
  "list",
  "document",
  "webhook",
] as const;

export type Endpoint = (typeof ENDPOINTS)[number];
