#!/usr/bin/env node
import { Command, InvalidArgumentError } from "commander";
import { Cleanup } from "./cleanup.js";
import { scaleOption } from "./demo/options.js";
import { FleetError } from "./errors.js";
import { defaultScale, type Scale } from "./fleet-kinds.js";
import { type Started, startFleet } from "./start-fleet.js";
import { aborted, StopRequested, stopSignal } from "./stop-signals.js";

function port(text: string): number {
  const value = Number(text);
  if (!/^\d{1,5}$/.test(text) || value < 1 || value > 65_535)
    throw new InvalidArgumentError("must be a port from 1 to 65535");
  return value;
}

interface Flags {
  scale: Scale;
  dataDir?: string;
  port?: number;
  webhookPort?: number;
  json: boolean;
}

const program = new Command()
  .name("npm start --")
  .description(
    "Runs the fleet, each process its own: against DATABASE_URL and REDIS_URL where they are set, else against an\n" +
      "embedded PostgreSQL (and Redis, if there is one to be had) whose data is kept in .countersign.",
  )
  .option("--scale <kinds>", "processes per kind, such as submit=4,reconcile=2", scaleOption, defaultScale)
  .option("--data-dir <folder>", "where run.json, logs, key and data are kept (default .countersign)")
  .option("--port <port>", "port of the API (default: a free one)", port)
  .option("--webhook-port <port>", "port of the webhook ingress (default: a free one)", port)
  .option(
    "--json",
    "print run.json on standard output once all are ready; everything else goes to standard error",
    false,
  )
  .addHelpText("after", "\nCtrl-C stops the processes in order; once more ends them at once.");

const { json, ...flags } = program.parse().opts<Flags>();
const output = json ? process.stderr : process.stdout;
const say = (text: string): void => void output.write(`${text}\n`);
const cleanup = new Cleanup();
const signal = stopSignal(() => say("\nStopping: calls in flight are finished first; once more to stop at once."));

function addresses({ record, runFile, envFile, logDir }: Started): string {
  const cli = "npm run countersign --";
  return [
    "",
    `API              ${record.api}   (browse: ${record.docs})`,
    `Webhook ingress  ${record.webhooks}`,
    `Console          ${record.console}   (log in: npm run countersign -- console-access add --name you --role operator)`,
    ...record.processes.map(({ name, url, pid }) => `Health           ${url}/readyz   ${name}, pid ${pid}`),
    `Addresses, pids  ${runFile}`,
    `Logs             ${logDir}`,
    ...(envFile === undefined ? [] : [`For the CLI      set -a; . ${envFile}; set +a`]),
    `First steps      ${cli} tenant create --id acme --owner contracts-team`,
    `                 ${cli} key create --tenant acme --name my-service`,
    "",
    "Running until Ctrl-C.",
  ].join("\n");
}

async function run(): Promise<number> {
  try {
    const started = await startFleet({ ...flags, env: process.env }, say, cleanup, signal);
    say(addresses(started));
    if (json) process.stdout.write(`${JSON.stringify(started.record)}\n`);
    await aborted(signal);
    await cleanup.run();
    return 0;
  } catch (error) {
    const interrupted = error instanceof StopRequested;
    if (!interrupted) say(error instanceof FleetError ? error.message : String(error));
    await cleanup.run();
    return interrupted ? 130 : 1;
  }
}

process.exitCode = await run();
