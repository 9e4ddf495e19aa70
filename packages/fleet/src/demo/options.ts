import { fileURLToPath } from "node:url";
import { InvalidArgumentError } from "commander";
import { defaultScale, parseScale, type Scale } from "../fleet-kinds.js";

/** What `npm run demo` was asked for. */
export interface DemoOptions {
  /** SENDs in all, amendments included. */
  readonly intents: number;
  /** Share of first attempts that get an ambiguous fault, 0 to 1. */
  readonly faults: number;
  readonly seed: string;
  /** The contracts file. */
  readonly input: string;
  readonly exit: boolean;
  readonly json: boolean;
  readonly scale: Scale;
}

const examples = fileURLToPath(new URL("../../../../examples/contracts.jsonl", import.meta.url));

export const demoDefaults: DemoOptions = {
  intents: 200,
  faults: 0.1,
  seed: "1",
  input: examples,
  exit: false,
  json: false,
  scale: defaultScale,
};

/** Rows, and requests the simulator holds in memory: beyond this a demo is a load test. */
const maxIntents = 20_000;

export function intentsOption(text: string): number {
  const value = Number(text);
  if (!/^\d{1,6}$/.test(text) || value < 1 || value > maxIntents) {
    throw new InvalidArgumentError(`must be a whole number from 1 to ${maxIntents}`);
  }
  return value;
}

export function faultsOption(text: string): number {
  const value = Number(text);
  if (!/^(0|1|0?\.\d{1,6}|1\.0+|0\.\d{1,6})$/.test(text) || value > 1) {
    throw new InvalidArgumentError("must be a share from 0 to 1, such as 0.1");
  }
  return value;
}

export function scaleOption(text: string): Scale {
  try {
    return parseScale(text);
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}
