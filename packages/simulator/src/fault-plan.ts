import { z } from "zod";
import type { FaultSettings } from "./config.js";
import {
  ALL_FAULTS,
  ENDPOINTS,
  type Endpoint,
  type FaultKind,
  LOOKUP_FAULTS,
  type LookupFault,
  MUTATION_FAULTS,
  type MutationFault,
  SCRIPTED_ONLY_FAULTS,
  WEBHOOK_FAULTS,
  type WebhookFault,
} from "./fault-kinds.js";
import { draw, shuffledNumbers } from "./seeded.js";

/** One fault asked for outright: the next `times` calls that match get it. What is not named matches anything. */
const scriptedFaultShape = z.strictObject({
  kind: z.enum([...ALL_FAULTS, ...SCRIPTED_ONLY_FAULTS]),
  endpoint: z.enum(ENDPOINTS).optional(),
  tenant: z.string().optional(),
  /** The operation id in the request's own metadata, or in that of the request a call is about. */
  operationId: z.string().optional(),
  /** The id of the request that it is about: any read by id, whatever is done to it, its events. */
  reference: z.string().optional(),
  /** For webhook faults: only events of this type. */
  eventType: z.string().optional(),
  times: z.int().min(1).default(1),
  /** Overrides slowCommitMs, lookupLagMs or webhookDelayMs for this fault. */
  delayMs: z.number().min(0).optional(),
  /** Of `429-burst`, and of `answer`, which has no Retry-After without it. */
  retryAfterSeconds: z.int().min(1).optional(),
  /** Of the 5xx faults, and of `answer`. */
  status: z.int().min(400).max(599).optional(),
  /** The machine code of `answer`. */
  code: z.string().min(1).max(100).optional(),
});

/** `answer` needs its status and code; no other kind takes a code, or a status below 500. */
export const scriptedFaultSchema = scriptedFaultShape.superRefine(({ kind, status, code }, context) => {
  const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  if (kind === "answer") {
    if (status === undefined) refuse("status", "the fault answer needs a status");
    if (code === undefined) refuse("code", "the fault answer needs a code");
  } else {
    if (status !== undefined && status < 500) refuse("status", "only the fault answer takes a status below 500");
    if (code !== undefined) refuse("code", "only the fault answer takes a code");
  }
});

export type ScriptedFaultInput = z.input<typeof scriptedFaultSchema>;
type ScriptedFault = z.output<typeof scriptedFaultSchema>;

type RatedFault = (typeof ALL_FAULTS)[number];

/** Whom a call is about, as far as its metadata says. */
export interface Subject {
  readonly tenant?: string | undefined;
  readonly operationId?: string | undefined;
  /** The request that a call names by its id. */
  readonly reference?: string | undefined;
  /** Tagged `sandbox`: outside the audit, and no fault is drawn or dealt for it. */
  readonly sandbox: boolean;
}

/** A fault to apply, with its settings resolved. */
export interface Fault<K extends FaultKind = FaultKind> {
  readonly kind: K;
  readonly slowCommitMs: number;
  readonly slowCommitHoldMs: number;
  readonly lookupLagMs: number;
  readonly webhookDelayMs: number;
  readonly retryAfterSeconds: number;
  readonly errorStatus: number;
  /** What `answer` answers. */
  readonly answer: { status: number; code: string; retryAfterSeconds: number | undefined } | undefined;
}

/** Decides which call gets which fault: scripted ones first, then dealt ones, then those drawn by rate. */
export class FaultPlan {
  readonly #seed: string;
  readonly #settings: () => FaultSettings;
  #script: ScriptedFault[] = [];
  #dealtOf: FaultSettings["dealFaults"];
  #hands = new Map<number, MutationFault>();
  #firstAttempts = 0;
  #dealt = 0;
  #untagged = 0;
  readonly #applied = new Map<FaultKind, number>();

  constructor(seed: string, settings: () => FaultSettings) {
    this.#seed = seed;
    this.#settings = settings;
  }

  /** Appends to the script. */
  script(faults: readonly ScriptedFaultInput[]): void {
    this.#script.push(...faults.map((fault) => scriptedFaultSchema.parse(fault)));
  }

  clearScript(): void {
    this.#script = [];
  }

  /** Faults still waiting in the script, how many were dealt of how many, and how often each kind was applied. */
  report(): {
    scripted: number;
    dealt: number;
    toDeal: number;
    firstAttempts: number;
    applied: Record<string, number>;
  } {
    this.#deal();
    return {
      scripted: this.#script.reduce((sum, fault) => sum + fault.times, 0),
      dealt: this.#dealt,
      toDeal: this.#hands.size,
      firstAttempts: this.#firstAttempts,
      applied: Object.fromEntries(this.#applied),
    };
  }

  /** A reset that needs nothing of the body, decided when the headers are in. */
  forHeaders(endpoint: Endpoint): boolean {
    const matches = (fault: ScriptedFault) =>
      fault.kind === "reset-before-any-byte" &&
      fault.operationId === undefined &&
      fault.tenant === undefined &&
      fault.reference === undefined &&
      (fault.endpoint === undefined || fault.endpoint === endpoint);
    return this.#takeScripted(matches) !== undefined;
  }

  /** The fault of a call that may change something. `attempt` counts arrivals of its operation from 1. */
  forMutation(endpoint: Endpoint, subject: Subject, attempt: number): Fault<MutationFault> | undefined {
    const scripted = this.#scriptedFor([...MUTATION_FAULTS, ...SCRIPTED_ONLY_FAULTS], endpoint, subject);
    const isFirst = attempt === 1 && (endpoint === "send" || endpoint === "instantiate");
    const dealt = isFirst && subject.operationId !== undefined && !subject.sandbox ? this.#nextHand() : undefined;
    return scripted ?? dealt ?? this.#drawn(MUTATION_FAULTS, endpoint, subject, attempt);
  }

  /** The fault of a read. */
  forLookup(endpoint: "get" | "list" | "document", subject: Subject): Fault<LookupFault> | undefined {
    const kinds = endpoint === "list" ? LOOKUP_FAULTS : (["lookup-fail", "lookup-hang"] as const);
    this.#untagged += 1;
    return this.#scriptedFor(kinds, endpoint, subject) ?? this.#drawn(kinds, endpoint, subject, this.#untagged);
  }

  /** The fault of one outgoing event. */
  forEvent(type: string, eventNo: number, subject: Subject): Fault<WebhookFault> | undefined {
    return (
      this.#scriptedFor(WEBHOOK_FAULTS, "webhook", subject, type) ??
      this.#drawn(WEBHOOK_FAULTS, "webhook", subject, eventNo)
    );
  }

  #scriptedFor<K extends FaultKind>(
    kinds: readonly K[],
    endpoint: Endpoint,
    subject: Subject,
    eventType?: string,
  ): Fault<K> | undefined {
    let kind: K | undefined;
    const taken = this.#takeScripted((fault) => {
      kind = kinds.find((candidate) => candidate === fault.kind);
      return (
        kind !== undefined &&
        (fault.endpoint === undefined || fault.endpoint === endpoint) &&
        (fault.tenant === undefined || fault.tenant === subject.tenant) &&
        (fault.operationId === undefined || fault.operationId === subject.operationId) &&
        (fault.reference === undefined || fault.reference === subject.reference) &&
        (fault.eventType === undefined || fault.eventType === eventType)
      );
    });
    return taken === undefined || kind === undefined ? undefined : this.#resolve(kind, taken);
  }

  #takeScripted(matches: (fault: ScriptedFault) => boolean): ScriptedFault | undefined {
    const index = this.#script.findIndex(matches);
    const fault = this.#script[index];
    if (fault === undefined) return undefined;
    if (fault.times > 1) this.#script[index] = { ...fault, times: fault.times - 1 };
    else this.#script.splice(index, 1);
    return fault;
  }

  #drawn<K extends RatedFault>(
    kinds: readonly K[],
    endpoint: Endpoint,
    subject: Subject,
    attempt: number,
  ): Fault<K> | undefined {
    const { rates } = this.#settings();
    if (subject.sandbox || !kinds.some((kind) => (rates[kind] ?? 0) > 0)) return undefined;
    const who = subject.operationId ?? `untagged ${this.#untagged++}`;
    let rest = draw(this.#seed, JSON.stringify([endpoint, subject.tenant, who, attempt]));
    for (const kind of kinds) {
      rest -= rates[kind] ?? 0;
      if (rest < 0) return this.#resolve(kind);
    }
    return undefined;
  }

  #nextHand(): Fault<MutationFault> | undefined {
    this.#deal();
    const kind = this.#hands.get(this.#firstAttempts);
    this.#firstAttempts += 1;
    if (kind === undefined) return undefined;
    this.#dealt += 1;
    return this.#resolve(kind);
  }

  /** Deals anew whenever the setting is another one; the count of first attempts then starts again. */
  #deal(): void {
    const { dealFaults } = this.#settings();
    if (JSON.stringify(dealFaults) === JSON.stringify(this.#dealtOf)) return;
    this.#dealtOf = dealFaults;
    this.#firstAttempts = 0;
    this.#dealt = 0;
    const among = Math.max(dealFaults?.among ?? 0, dealFaults?.count ?? 0);
    const chosen = shuffledNumbers(this.#seed, "deal", among).slice(0, dealFaults?.count ?? 0);
    this.#hands = new Map(
      chosen.flatMap((number, turn) => {
        const kind = dealFaults?.kinds[turn % dealFaults.kinds.length];
        return kind === undefined ? [] : [[number, kind]];
      }),
    );
  }

  #resolve<K extends FaultKind>(kind: K, scripted?: ScriptedFault): Fault<K> {
    const settings = this.#settings();
    this.#applied.set(kind, (this.#applied.get(kind) ?? 0) + 1);
    return {
      kind,
      slowCommitMs: scripted?.delayMs ?? settings.slowCommitMs,
      slowCommitHoldMs: settings.slowCommitHoldMs,
      lookupLagMs: scripted?.delayMs ?? settings.lookupLagMs,
      webhookDelayMs: scripted?.delayMs ?? settings.webhookDelayMs,
      retryAfterSeconds: scripted?.retryAfterSeconds ?? settings.retryAfterSeconds,
      errorStatus: scripted?.status ?? settings.errorStatus,
      answer: scripted === undefined ? undefined : answerOf(scripted),
    };
  }
}

function answerOf({ kind, status, code, retryAfterSeconds }: ScriptedFault): Fault["answer"] {
  if (kind !== "answer" || status === undefined || code === undefined) return undefined;
  return { status, code, retryAfterSeconds };
}
