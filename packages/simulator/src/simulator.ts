import { Audit, type AuditReport } from "./audit.js";
import { Background, Clock } from "./clock.js";
import { applyPatch, type FaultPatch, retentionMs, type SimulatorConfig, staleLockMs } from "./config.js";
import { FaultPlan } from "./fault-plan.js";
import { IdempotencyKeys } from "./idempotency.js";
import { startLife } from "./life.js";
import type { Parts } from "./parts.js";
import { RateLimiter } from "./rate-limit.js";
import type { SigningRequest } from "./signing-request.js";
import { Webhooks } from "./webhooks.js";
import { World } from "./world.js";

/** Keys past their lifetime are pruned this often, and requests past theirs expire at the same pace or faster. */
const PRUNE_EVERY_MS = 300_000;
const EXPIRE_EVERY_MS = 1_000;

/** The provider without its HTTP face. */
export class Simulator {
  readonly parts: Parts;
  readonly #intervals: NodeJS.Timeout[];

  constructor(config: SimulatorConfig) {
    const clock = new Clock();
    const background = new Background();
    const faults = new FaultPlan(config.seed, () => config.faults);
    const webhooks = new Webhooks({ clock, background, config, faults });
    const world = new World(clock, config, webhooks);
    world.onSent = (request) => startLife(request, world, config, background);
    this.parts = {
      config,
      clock,
      background,
      faults,
      keys: new IdempotencyKeys(clock, { staleLockMs: staleLockMs(config), retentionMs: retentionMs(config) }),
      limiter: new RateLimiter(clock, config),
      webhooks,
      world,
      audit: new Audit(config.maxRequests),
    };
    for (const { name, hooks } of config.workspaces) {
      for (const { url, secret } of hooks) webhooks.register(name, url, secret);
    }
    this.#intervals = [
      setInterval(() => this.parts.keys.prune(), Math.max(10, PRUNE_EVERY_MS * config.timeScale)),
      setInterval(() => world.expireDue(), EXPIRE_EVERY_MS),
    ];
    for (const interval of this.#intervals) interval.unref();
  }

  audit(): AuditReport {
    return this.parts.audit.report(this.parts.world, this.parts.faults);
  }

  /** A copy of the configuration as it is now. */
  config(): SimulatorConfig {
    return structuredClone(this.parts.config);
  }

  /** Applies a partial change. @throws SimulatorConfigError and changes nothing when a part is bad. */
  configure(patch: unknown): SimulatorConfig {
    const { config, webhooks } = this.parts;
    for (const named of applyPatch(config, patch)) {
      const known = config.workspaces.find(({ name }) => name === named.name);
      if (known === undefined) config.workspaces.push(named);
      else {
        known.keys = [...new Set([...known.keys, ...named.keys])];
        known.hooks.push(...named.hooks);
      }
      for (const { url, secret } of named.hooks) webhooks.register(named.name, url, secret);
    }
    return this.config();
  }

  setFaults(patch: FaultPatch): void {
    this.configure({ faults: patch });
  }

  /** Moves a request on by hand. @throws ProviderError 404, or 409 when it is over. */
  advance(
    id: string,
    status: "viewed" | "signed" | "completed" | "declined" | "expired" | "withdrawn",
  ): SigningRequest {
    const request = this.parts.world.get(undefined, id);
    if (status === "withdrawn") this.parts.world.withdraw(request);
    else this.parts.world.advance(request, status);
    return request;
  }

  /** Moves the provider's clock forward: keys age, locks turn stale, requests expire. */
  advanceClock(ms: number): void {
    this.parts.clock.advance(ms);
    this.parts.keys.prune();
    this.parts.world.expireDue();
  }

  /** Resolves when nothing is left to happen: deliveries, slow commits, life. @throws NotIdleError. */
  waitIdle(timeoutMs = 10_000): Promise<void> {
    return this.parts.background.idle(timeoutMs);
  }

  async stop(): Promise<void> {
    for (const interval of this.#intervals) clearInterval(interval);
    this.parts.background.stop();
    await this.parts.webhooks.stop();
  }
}
