import type { DeliveryHeaders, SigningEvent, Uninterpretable, VerifyResult, WebhookSecret } from "../port.js";

/**
 * How one kind of sender proves that a delivery is its own: what it is called and how strong it is as data, and one small
 * verifier. Which scheme an endpoint speaks is chosen when the endpoint is made.
 */
export interface WebhookScheme {
  /** As an endpoint names it. */
  readonly name: string;
  readonly title: string;
  /** What the proof covers, and so what nobody else can have changed. */
  readonly covers: "time-and-body" | "id-time-and-body" | "body" | "event-time-and-type" | "nothing";
  /** False: anybody who saw one delivery can write another, so its events are hints: the provider is asked first. */
  readonly authenticatesBody: boolean;
  /** How far the signed time may be from our clock, either way, ms; absent: the scheme signs no time of delivery. */
  readonly toleranceMs?: number;
  /** Headers that verification reads, in lower case. */
  readonly headers: readonly string[];
  /** Where the event id comes from: a header that is signed, the signed body, or fields of the body (weak). */
  readonly eventId: "signed-header" | "body" | "derived";
  /** What the sender insists on reading in the 2xx. */
  readonly acknowledgement?: { readonly text: string; readonly contentType: string };
  /** Why this text can't be a secret of the scheme: nothing would ever verify with it. Never repeats the secret. */
  checkSecret(secret: string): string | undefined;
  /** Over the raw bytes, constant time, every active secret; `nowMs` is Unix time in ms. Never throws. */
  verify(rawBody: Uint8Array, headers: DeliveryHeaders, secrets: readonly WebhookSecret[], nowMs: number): VerifyResult;
  /** What keeps the proof itself from being read, or undefined. For people: verification says it in one word. Never throws. */
  fault(rawBody: Uint8Array, headers: DeliveryHeaders): ProofFault | undefined;
  /** Does the proof fit this very key, whatever the scheme makes of a secret's text? For diagnosis. Never throws. */
  fitsKey?(rawBody: Uint8Array, headers: DeliveryHeaders, key: Uint8Array): boolean;
  /** The event id in a header that the signature covers; undefined where it is absent or unusable. */
  signedId?(headers: DeliveryHeaders): string | undefined;
  /** The event id in a header that nothing covers: only ever compared with the signed one. */
  unsignedId?(headers: DeliveryHeaders): string | undefined;
  /** The vendor's own form of events; absent: the adapter's. */
  readonly format?: EventFormat;
  /** One sentence: how strong the proof of origin is. */
  readonly authentication: string;
  /** One sentence: how well a repeated delivery is recognised. */
  readonly deduplication: string;
}

/** Why a delivery's proof can't be read. */
export interface ProofFault {
  readonly reason: "missing-header" | "malformed-header" | "unreadable-body";
  /** Which header, in lower case; absent: the proof is in the body. */
  readonly header?: string;
  /** What is wrong, as a sentence goes on after naming the header or body; repeats nothing of either. */
  readonly fault: string;
}

/** What a body says; `eventId` only where the body itself has one (or fields that make one). */
export type ReadEvent = Omit<SigningEvent, "eventId"> & { eventId?: string };

/** A provider's form of events. */
export interface EventFormat {
  /** A verified body in our words, its texts as they are: the contract refuses what can't be stored. Never throws. */
  parse(rawBody: Uint8Array, headers: DeliveryHeaders): ReadEvent | Uninterpretable;
  /** The fields that make the derived id, in order, where the body has none. */
  readonly derivedFrom?: readonly string[];
}
