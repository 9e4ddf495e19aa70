import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "@countersign/devstack";
import { Child } from "./child.js";
import { ProcessNotReadyError } from "./errors.js";
import { facts, type ProcessKind, processKinds, type Scale, scriptOf } from "./fleet-kinds.js";

export interface FleetOptions {
  readonly scale: Scale;
  /** The environment of every process; PORT is set for each. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Existing folder for one log file per process. */
  readonly logDir: string;
  /** Fixed ports, for kinds of one process. */
  readonly ports?: Partial<Record<ProcessKind, number>>;
  /** Told in a sentence when a process ends by itself and when it is back. */
  say(text: string): void;
  /** Called whenever pids changed. */
  changed?(): void;
}

/** A process as `run.json` names it. */
export interface ProcessAddress {
  readonly name: string;
  readonly kind: ProcessKind;
  readonly pid: number;
  readonly url: string;
}

const readyTimeoutMs = 60_000;
const readyPollMs = 50;
const probeTimeoutMs = 3_000;
const stopGraceMs = 45_000;
/** Wait before a process that ended by itself is started again: doubled each time, forgotten after a calm minute. */
const restartMs = { first: 500, longest: 30_000, calm: 60_000 };

/** One place in the fleet: the same name, port and log file, whichever process fills it. */
class Place {
  readonly name: string;
  readonly kind: ProcessKind;
  readonly port: number;
  readonly #options: FleetOptions;
  child: Child;
  #stopping = false;
  #crashes = 0;
  #startedAt = 0;
  readonly #wake = new AbortController();

  constructor(kind: ProcessKind, index: number, port: number, options: FleetOptions) {
    this.kind = kind;
    this.name = options.scale[kind] > 1 ? `${kind}-${index + 1}` : kind;
    this.port = port;
    this.#options = options;
    this.child = this.#spawn();
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  #spawn(): Child {
    this.#startedAt = performance.now();
    const child = new Child({
      script: scriptOf(this.kind),
      env: { ...this.#options.env, PORT: String(this.port) },
      logFile: join(this.#options.logDir, `${this.name}.log`),
    });
    void child.ended().then((how) => this.#onEnd(how));
    return child;
  }

  async #onEnd(how: string): Promise<void> {
    if (this.#stopping) return;
    if (performance.now() - this.#startedAt > restartMs.calm) this.#crashes = 0;
    const waitMs = Math.min(restartMs.longest, restartMs.first * 2 ** this.#crashes);
    this.#crashes += 1;
    this.#options.say(
      `${this.name} ended by itself (${how}); started again in ${waitMs} ms. Log: ${this.child.logFile}`,
    );
    await delay(waitMs, undefined, { signal: this.#wake.signal }).catch(() => undefined);
    if (this.#stopping) return;
    this.child = this.#spawn();
    this.#options.changed?.();
  }

  /** Resolves once it says that it can make progress. @throws ProcessNotReadyError */
  async ready(): Promise<void> {
    const until = performance.now() + readyTimeoutMs;
    for (;;) {
      const answer = await probe(`${this.url}/readyz`);
      if (answer.ready) return;
      if (this.#crashes > 1) throw new ProcessNotReadyError(this.name, "it keeps ending", this.child.logTail());
      if (performance.now() > until) throw new ProcessNotReadyError(this.name, answer.why, this.child.logTail());
      await delay(readyPollMs);
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake.abort();
    await this.child.stop(stopGraceMs);
  }

  kill(): void {
    this.#stopping = true;
    this.child.process.kill("SIGKILL");
  }
}

async function probe(url: string): Promise<{ ready: boolean; why: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(probeTimeoutMs) });
    const why = `${response.status} ${await response.text()}`;
    return { ready: response.ok, why };
  } catch (error) {
    return { ready: false, why: error instanceof Error ? error.message : String(error) };
  }
}

/** The processes of a fleet, each its own, all ended with this one. */
export class Fleet {
  readonly #places: readonly Place[];

  private constructor(places: readonly Place[]) {
    this.#places = places;
  }

  /** Starts all processes and resolves when each is ready. @throws ProcessNotReadyError after ending the others */
  static async start(options: FleetOptions): Promise<Fleet> {
    const places: Place[] = [];
    for (const kind of processKinds) {
      for (let index = 0; index < options.scale[kind]; index += 1) {
        const port = (index === 0 ? options.ports?.[kind] : undefined) ?? (await freePort());
        places.push(new Place(kind, index, port, options));
      }
    }
    const fleet = new Fleet(places);
    try {
      await Promise.all(places.map((place) => place.ready()));
    } catch (error) {
      fleet.kill();
      throw error;
    }
    return fleet;
  }

  processes(): ProcessAddress[] {
    return this.#places.map(({ name, kind, url, child }) => ({ name, kind, pid: child.pid, url }));
  }

  /** The address of the first process of a kind. */
  urlOf(kind: ProcessKind): string {
    const place = this.#places.find((each) => each.kind === kind);
    if (place === undefined) throw new RangeError(`no ${kind} in this fleet`);
    return place.url;
  }

  /** Stops them in order: first those that take work from outside, then those that work it off. */
  async stop(): Promise<void> {
    for (const turn of [1, 2] as const) {
      await Promise.all(this.#places.filter(({ kind }) => facts[kind].stopsIn === turn).map((place) => place.stop()));
    }
  }

  /** Ends all of them at once. */
  kill(): void {
    for (const place of this.#places) place.kill();
  }
}
