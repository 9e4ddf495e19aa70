import { z } from "zod";
import { ALL_FAULTS, MUTATION_FAULTS } from "./fault-kinds.js";

const HOUR_MS = 3_600_000;

const hookSchema = z.strictObject({
  /** Where events are posted: https, or http to a loopback address while `webhooks.allowLoopback` stands. */
  url: z.string().min(1),
  /** The whole text, prefix included, is the HMAC key. */
  secret: z.string().min(1),
});

const workspaceSchema = z.strictObject({
  name: z.string().min(1),
  /** Bearer keys of this workspace; several keys share its idempotency keys, requests and hooks. */
  keys: z.array(z.string().min(1)).default([]),
  hooks: z.array(hookSchema).default([]),
});

const templateSchema = z.strictObject({
  id: z.string().min(1),
  /** `esign` templates have recipients, `file` templates only produce a document. */
  kind: z.enum(["esign", "file"]),
  /** Every instance is staged for review, whether or not the caller asks for that. */
  autoStage: z.boolean().default(false),
});

const rateLimitSchema = z.strictObject({
  limit: z.int().min(1),
  windowMs: z.number().positive(),
});

const lifeSchema = z.strictObject({
  enabled: z.boolean().default(false),
  /** Share of requests that are signed to the end. */
  completeRate: z.number().min(0).max(1).default(0.8),
  /** Share that is viewed and then declined; what is left over is viewed and stays there. */
  declineRate: z.number().min(0).max(1).default(0.05),
  /** Mean time between two steps; each step is drawn between half and one and a half of it. */
  stepMs: z.number().positive().default(1_000),
});

const webhooksSchema = z.strictObject({
  /** Multiplies the delays between attempts (30 s to 12 h). */
  timeScale: z.number().positive().default(1),
  /** A delivery without a 2xx in this time has failed. */
  timeoutMs: z.number().positive().default(10_000),
  /** Failed attempts in a row, over all events, that turn a hook off. */
  disableAfter: z.int().min(1).default(25),
  /** Allow plain http, and loopback addresses, as a hook's URL. */
  allowLoopback: z.boolean().default(true),
});

const faultsSchema = z.strictObject({
  /** Probability by kind, drawn from the seed, operation and arrival number, so that concurrency does not change it. */
  rates: z.partialRecord(z.enum(ALL_FAULTS), z.number().min(0).max(1)).default({}),
  /**
   * Dealt, not drawn: of the first `among` operations to arrive, exactly `count` have their first attempt spoiled,
   * chosen by a seeded shuffle, the kinds in turn.
   */
  dealFaults: z
    .strictObject({
      kinds: z.array(z.enum(MUTATION_FAULTS)).min(1),
      count: z.int().min(0),
      among: z.int().min(1).optional(),
    })
    .optional(),
  /** How long after the client has gone a slow commit happens. */
  slowCommitMs: z.number().min(0).default(2_000),
  /** The longest a slow commit waits for its client to go. */
  slowCommitHoldMs: z.number().min(0).default(120_000),
  /** How long a burst of 429 lasts. */
  retryAfterSeconds: z.int().min(1).default(1),
  /** The status of the 5xx faults. */
  errorStatus: z.int().min(500).max(599).default(500),
  /** What one `lookup-lag` fault hides: requests younger than this. */
  lookupLagMs: z.number().min(0).default(2_000),
  /** How long a delayed webhook waits; also the longest an out-of-order one is held for its successor. */
  webhookDelayMs: z.number().min(0).default(1_000),
});

/** What can be changed while the simulator runs. */
const mutableShape = {
  /**
   * `poor`: no idempotency keys and no list (404), for the poorest providers.
   * `list-ignores-filter`: the list answers everything, whatever was asked.
   */
  mode: z.enum(["normal", "poor", "list-ignores-filter"]).default("normal"),
  /** Time each call takes before it does anything, while its key is pending. */
  latencyMs: z.number().min(0).default(0),
  /** The list never shows requests younger than this; reading by id does. */
  lookupLagMs: z.number().min(0).default(0),
  rateLimit: rateLimitSchema.default({ limit: 100_000, windowMs: 60_000 }),
  life: lifeSchema.prefault({}),
  webhooks: webhooksSchema.prefault({}),
  faults: faultsSchema.prefault({}),
};

const optionsSchema = z.strictObject({
  ...mutableShape,
  host: z.string().default("127.0.0.1"),
  /** 0 takes a free port. */
  port: z.int().min(0).max(65_535).default(0),
  seed: z.union([z.string(), z.number()]).transform(String).default("1"),
  workspaces: z.array(workspaceSchema).default([{ name: "default", keys: ["wsk_test"], hooks: [] }]),
  templates: z.array(templateSchema).prefault([
    { id: "tpl_contract", kind: "esign" },
    { id: "tpl_amendment", kind: "esign" },
    { id: "tpl_letter", kind: "file" },
    { id: "tpl_reviewed", kind: "esign", autoStage: true },
  ]),
  /** Multiplies the lifetimes of keys (24 h, 60 s, 5 min), unless they are given outright below. */
  timeScale: z.number().positive().default(1),
  retentionMs: z.number().positive().optional(),
  staleLockMs: z.number().positive().optional(),
  /** Beyond this many requests new ones are refused with 503 `capacity`: nothing the audit counts is ever forgotten. */
  maxRequests: z.int().min(1).default(200_000),
  maxFileBytes: z
    .int()
    .min(1)
    .default(25 * 1024 * 1024),
  /** Who may read the audit and use `/_control`: only loopback peers, or anyone (inside a container network). */
  controlFrom: z.enum(["loopback", "any"]).default("loopback"),
});

/** What a caller passes to `startSimulator`; every part has a default. */
export type SimulatorOptions = z.input<typeof optionsSchema>;

/** The options with all defaults filled in. */
export type SimulatorConfig = z.output<typeof optionsSchema>;

/** The fault part of the configuration. */
export type FaultSettings = SimulatorConfig["faults"];

/** A change of faults: named members replace what was set, the others stay. */
export type FaultPatch = Partial<z.input<typeof faultsSchema>>;

export type WorkspaceSettings = z.output<typeof workspaceSchema>;

/** A bad option; the message names it. */
export class SimulatorConfigError extends Error {
  override readonly name = "SimulatorConfigError";
}

function parseOrExplain<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new SimulatorConfigError(z.prettifyError(parsed.error), { cause: parsed.error });
  return parsed.data;
}

/** Fills in the defaults. @throws SimulatorConfigError naming a bad or unknown option. */
export function parseOptions(options: unknown): SimulatorConfig {
  return parseOrExplain(optionsSchema, options);
}

const patchSchema = z.strictObject({
  mode: z.unknown().optional(),
  latencyMs: z.unknown().optional(),
  lookupLagMs: z.unknown().optional(),
  rateLimit: z.unknown().optional(),
  life: z.record(z.string(), z.unknown()).optional(),
  webhooks: z.record(z.string(), z.unknown()).optional(),
  faults: z.record(z.string(), z.unknown()).optional(),
  workspaces: z.array(workspaceSchema).optional(),
});

/**
 * Applies a partial change to a running configuration, in place: members of `life`, `webhooks` and `faults` are merged
 * one by one, workspaces named are added or extended. Returns the workspaces that were named, for their hooks.
 * @throws SimulatorConfigError and changes nothing when any part is bad.
 */
export function applyPatch(config: SimulatorConfig, value: unknown): WorkspaceSettings[] {
  const { workspaces = [], life, webhooks, faults, ...rest } = parseOrExplain(patchSchema, value);
  const merged = parseOrExplain(z.strictObject(mutableShape), {
    mode: config.mode,
    latencyMs: config.latencyMs,
    lookupLagMs: config.lookupLagMs,
    rateLimit: config.rateLimit,
    ...rest,
    life: { ...config.life, ...life },
    webhooks: { ...config.webhooks, ...webhooks },
    faults: { ...config.faults, ...nullToAbsent(faults) },
  });
  Object.assign(config, merged);
  return workspaces;
}

/** JSON has no `undefined`: `null` takes a member back out (`dealFaults: null` ends the dealing). */
function nullToAbsent(patch: Record<string, unknown> | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(patch ?? {}).map(([key, value]) => [key, value ?? undefined]));
}

/** How long a key is remembered: 24 hours, scaled. */
export function retentionMs(config: SimulatorConfig): number {
  return config.retentionMs ?? 24 * HOUR_MS * config.timeScale;
}

/** When a pending key may be taken over: 60 seconds, scaled. */
export function staleLockMs(config: SimulatorConfig): number {
  return config.staleLockMs ?? 60_000 * config.timeScale;
}
