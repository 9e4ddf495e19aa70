#!/usr/bin/env node
import { Command } from "commander";
import { Cleanup } from "./cleanup.js";
import { type DemoOptions, demoDefaults, faultsOption, intentsOption, scaleOption } from "./demo/options.js";
import { runDemo } from "./demo/run-demo.js";
import { FleetError } from "./errors.js";
import { aborted, StopRequested, stopSignal } from "./stop-signals.js";

const program = new Command()
  .name("npm run demo --")
  .description(
    "Sends real signature requests through a provider that loses answers, hangs and fails, and then compares what was\n" +
      "meant with what the provider holds. Starts everything it needs and ends it again.",
  )
  .option("--intents <n>", "SENDs in all, amendments included; contracts are repeated as revisions", intentsOption, 200)
  .option("--faults <rate>", "share of first attempts that get an ambiguous fault: exactly ⌈rate·n⌉", faultsOption, 0.1)
  .option("--seed <seed>", "seed of faults and of what recipients do", "1")
  .option("--input <file>", "contracts, one JSON object a line (examples/README.md)", demoDefaults.input)
  .option("--scale <kinds>", "processes per kind, such as submit=2,reconcile=2", scaleOption, demoDefaults.scale)
  .option("--exit", "end after the audit instead of staying up", false)
  .option(
    "--json",
    "print the audit as one line of JSON, last on standard output; everything else goes to standard error",
    false,
  )
  .addHelpText(
    "after",
    "\nExit code: 0 when nothing is doubled, missing or wrongly void; 1 when something is; 130 when interrupted.",
  );

const options: DemoOptions = program.parse().opts<DemoOptions>();
const output = options.json ? process.stderr : process.stdout;
const cleanup = new Cleanup();
const signal = stopSignal(() => output.write("\nStopping; once more to stop at once.\n"));

async function run(): Promise<number> {
  try {
    const { audit, good } = await runDemo(options, output, cleanup, signal);
    const json = JSON.stringify(audit);
    if (options.exit) {
      await cleanup.run();
      if (options.json) process.stdout.write(`${json}\n`);
      return good ? 0 : 1;
    }
    if (options.json) process.stdout.write(`${json}\n`);
    output.write("\nIt stays up until Ctrl-C.\n");
    await aborted(signal);
    await cleanup.run();
    return good ? 0 : 1;
  } catch (error) {
    const interrupted = error instanceof StopRequested;
    if (!interrupted) output.write(`${error instanceof FleetError ? error.message : String(error)}\n`);
    await cleanup.run();
    return interrupted ? 130 : 1;
  }
}

process.exitCode = await run();
