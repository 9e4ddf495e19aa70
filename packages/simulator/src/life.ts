import type { Background } from "./clock.js";
import type { SimulatorConfig } from "./config.js";
import { draw } from "./seeded.js";
import { isOpen, type SigningRequest } from "./signing-request.js";
import type { World } from "./world.js";

type Step = "viewed" | "signed" | "completed" | "declined";

/** What becomes of a request, from the seed and its operation alone. */
export function fateOf(config: SimulatorConfig, label: string): readonly Step[] {
  const drawn = draw(config.seed, `fate:${label}`);
  if (drawn < config.life.declineRate) return ["viewed", "declined"];
  if (drawn < config.life.declineRate + config.life.completeRate) return ["viewed", "signed", "completed"];
  return ["viewed"];
}

/** Lets recipients act on a request that was sent, step by step, until it is over or withdrawn. */
export function startLife(
  request: SigningRequest,
  world: World,
  config: SimulatorConfig,
  background: Background,
): void {
  if (!config.life.enabled || request.subject.sandbox) return;
  const label = request.subject.operationId ?? String(request.seq);
  const next = (steps: readonly Step[]) => {
    const [step, ...rest] = steps;
    if (step === undefined) return;
    const delayMs = config.life.stepMs * (0.5 + draw(config.seed, `step:${label}:${step}`));
    background.after(delayMs, () => {
      if (!isOpen(request)) return;
      world.advance(request, step);
      next(rest);
    });
  };
  next(fateOf(config, label));
}
