#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { SimulatorConfigError, type SimulatorOptions } from "./config.js";
import { startSimulator } from "./start.js";

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65_535) throw new InvalidArgumentError("a port is 0 to 65535");
  return value;
}

/** Reads the configuration: JSON itself, or the path of a file with it. */
function configuration(text: string): object {
  const json = text.trimStart().startsWith("{") ? text : readFileSync(text, "utf8");
  const value: unknown = JSON.parse(json);
  if (typeof value !== "object" || value === null) throw new InvalidArgumentError("the configuration is a JSON object");
  return value;
}

interface Flags {
  port?: number;
  host?: string;
  seed?: string;
  config?: object;
}

const program = new Command()
  .name("countersign-simulator")
  .description("A signature provider to develop against, with faults and an audit. Everything is kept in memory.")
  .option("--port <port>", "port to listen on, 0 for a free one (default 0)", port)
  .option("--host <host>", "address to listen on (default 127.0.0.1)")
  .option("--seed <seed>", "seed of faults and of what recipients do (default 1)")
  .option("--config <json|file>", "options as JSON, or a file with them; flags win over it", configuration)
  .addHelpText(
    "after",
    "\nPrints one line of JSON, {url, port, pid}, when it listens. GET /audit tells what it holds; POST /_control/faults\n" +
      "and POST /_control/config change what it does. Ends on SIGTERM, SIGINT, or when the parent's IPC channel closes.",
  );

async function run(flags: Flags): Promise<void> {
  const { config, ...rest } = flags;
  const options: SimulatorOptions = { ...config, ...rest };
  const simulator = await startSimulator(options);
  const address = { url: simulator.url, port: simulator.port, pid: process.pid };
  process.stdout.write(`${JSON.stringify(address)}\n`);
  process.send?.({ type: "ready", ...address });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= simulator.stop();
    stopping.then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.once("disconnect", stop);
}

try {
  await run(program.parse().opts<Flags>());
} catch (error) {
  const known = error instanceof SimulatorConfigError || (error instanceof Error && "code" in error);
  process.stderr.write(`${known ? error.message : String(error)}\n`);
  process.exit(1);
}
