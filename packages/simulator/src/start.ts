import type { AuditReport } from "./audit.js";
import { type FaultPatch, parseOptions, type SimulatorConfig, type SimulatorOptions } from "./config.js";
import type { ScriptedFaultInput } from "./fault-plan.js";
import { buildServer } from "./server.js";
import { Simulator } from "./simulator.js";

/** A simulator that runs in this process. */
export interface RunningSimulator {
  /** Base address, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** What it holds and what reached it. */
  audit(): AuditReport;
  /** A copy of its configuration as it is now. */
  config(): SimulatorConfig;
  /** Changes part of the configuration, as `POST /_control/config` does. @throws SimulatorConfigError. */
  configure(patch: unknown): SimulatorConfig;
  /** Changes part of the fault settings; the others stay. @throws SimulatorConfigError. */
  setFaults(faults: FaultPatch): void;
  /** Asks for faults outright: the next matching calls get them. */
  script(...faults: ScriptedFaultInput[]): void;
  /** Moves a request on by hand. @throws ProviderError 404 or 409. */
  advance(id: string, status: "viewed" | "signed" | "completed" | "declined" | "expired" | "withdrawn"): void;
  /** Moves the provider's clock forward, in milliseconds. Running timers are not shortened. */
  advanceClock(ms: number): void;
  /** Resolves when no delivery, slow commit or step of life is left. @throws NotIdleError after `timeoutMs` (10 s). */
  waitIdle(timeoutMs?: number): Promise<void>;
  /** Ends it: open connections are cut, planned work is forgotten. */
  stop(): Promise<void>;
}

/** Starts a simulator and resolves when it listens. @throws SimulatorConfigError naming a bad option. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<RunningSimulator> {
  const config = parseOptions(options);
  const simulator = new Simulator(config);
  const app = await buildServer(simulator);
  const url = await app.listen({ port: config.port, host: config.host });
  return {
    url,
    port: Number(new URL(url).port),
    audit: () => simulator.audit(),
    config: () => simulator.config(),
    configure: (patch) => simulator.configure(patch),
    setFaults: (faults) => simulator.setFaults(faults),
    script: (...faults) => simulator.parts.faults.script(faults),
    advance: (id, status) => {
      simulator.advance(id, status);
    },
    advanceClock: (ms) => simulator.advanceClock(ms),
    waitIdle: (timeoutMs) => simulator.waitIdle(timeoutMs),
    stop: async () => {
      await simulator.stop();
      await app.close();
    },
  };
}
