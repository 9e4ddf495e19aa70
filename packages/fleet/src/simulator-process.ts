import { fileURLToPath } from "node:url";
import { z } from "zod";
import { Child } from "./child.js";
import { bareEnvironment } from "./child-env.js";
import { FleetError, ProcessNotReadyError } from "./errors.js";

const script = fileURLToPath(new URL("../../simulator/dist/main.js", import.meta.url));

const readyMessage = z.object({ type: z.literal("ready"), url: z.string() });

const auditReport = z.object({
  operations: z.array(
    z.object({
      tenant: z.string(),
      operationId: z.string(),
      requests: z.array(z.object({ status: z.string() })),
      arrivals: z.int(),
    }),
  ),
  totals: z.object({ mails: z.int(), withdrawals: z.int() }),
  untagged: z.object({ requests: z.int() }),
  faults: z.object({ dealt: z.int(), toDeal: z.int(), applied: z.record(z.string(), z.int()) }),
});

/** The provider's own count of what it holds. */
export type ProviderAudit = z.output<typeof auditReport>;

/** The signature provider of the demo, as its own process. */
export class SimulatorProcess {
  readonly url: string;
  readonly #child: Child;

  private constructor(child: Child, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Starts it with options of `packages/simulator/src/config.ts`. @throws ProcessNotReadyError */
  static async start(options: { seed: string; config: object; logFile: string }): Promise<SimulatorProcess> {
    const child = new Child({
      script,
      args: ["--seed", options.seed, "--config", JSON.stringify(options.config)],
      env: bareEnvironment(),
      logFile: options.logFile,
    });
    const message = readyMessage.safeParse(await child.firstMessage());
    if (message.success) return new SimulatorProcess(child, message.data.url);
    await child.stop(1_000);
    throw new ProcessNotReadyError("the simulator", "it ended", child.logTail());
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** What it holds and what reached it. */
  async audit(): Promise<ProviderAudit> {
    return auditReport.parse(await this.#call("/audit"));
  }

  /** Changes part of its configuration. */
  async configure(patch: object): Promise<void> {
    await this.#call("/_control/config", patch);
  }

  /** Asks for faults outright: the next matching calls get them. */
  async script(faults: readonly object[]): Promise<void> {
    await this.#call("/_control/faults", faults);
  }

  async stop(): Promise<void> {
    await this.#child.stop(3_000);
  }

  async #call(path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${this.url}${path}`, {
      ...(body === undefined
        ? {}
        : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    if (!response.ok)
      throw new FleetError(`the simulator answered ${response.status} to ${path}: ${await response.text()}`);
    return await response.json();
  }
}
