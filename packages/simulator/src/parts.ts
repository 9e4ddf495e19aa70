import type { Audit } from "./audit.js";
import type { Background, Clock } from "./clock.js";
import type { SimulatorConfig } from "./config.js";
import type { FaultPlan } from "./fault-plan.js";
import type { IdempotencyKeys } from "./idempotency.js";
import type { RateLimiter } from "./rate-limit.js";
import type { Webhooks } from "./webhooks.js";
import type { World } from "./world.js";

/** What the routes work with. */
export interface Parts {
  readonly config: SimulatorConfig;
  readonly clock: Clock;
  readonly background: Background;
  readonly faults: FaultPlan;
  readonly keys: IdempotencyKeys;
  readonly limiter: RateLimiter;
  readonly webhooks: Webhooks;
  readonly world: World;
  readonly audit: Audit;
}
