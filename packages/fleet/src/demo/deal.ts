/** What a demo of so many intents consists of. */
export interface Deal {
  /** Contracts planned as they come. */
  readonly contracts: number;
  /** SENDs that replace one of them while it is in flight. */
  readonly amendments: number;
  /** Contracts that are voided later. */
  readonly voids: number;
  /** Contracts that are voided right after they were planned, likely before they are sent. */
  readonly voidsAtOnce: number;
  /** First attempts that get an ambiguous fault: exactly ⌈RATE·N⌉. */
  readonly faults: number;
  /** The faults are dealt among this many first arrivals. */
  readonly among: number;
  /** May calls be turned away by 429 on top? Such a call's operation takes no part in the dealing. */
  readonly bursts: boolean;
}

/** About a tenth is amended or voided, half and half. */
const changedShare = 0.05;
/** Share of the SENDs that may miss the dealing because a burst of 429 met their first call. */
const reserve = 0.15;

/** Lays out a demo. Pure: the same for the same numbers. */
export function layOut(intents: number, faultRate: number): Deal {
  const amendments = Math.round(intents * changedShare);
  const voids = Math.round(intents * changedShare);
  // 0.1 × 30 is 3.0000000000000004 in doubles; ⌈3⌉ is meant.
  const faults = Math.ceil(Number((intents * faultRate).toFixed(6)));
  // With nearly every first attempt spoiled, every SEND must reach the provider, and none may be turned away.
  const wantedAtOnce = Math.floor(voids / 4);
  const voidsAtOnce = faults <= intents - wantedAtOnce ? wantedAtOnce : 0;
  const surelySent = intents - voidsAtOnce;
  const withReserve = Math.floor(surelySent * (1 - reserve));
  const bursts = faults > 0 && faults <= withReserve;
  return {
    contracts: intents - amendments,
    amendments,
    voids: voids - voidsAtOnce,
    voidsAtOnce,
    faults,
    among: Math.max(1, bursts ? withReserve : surelySent),
    bursts,
  };
}
