#!/usr/bin/env node
import { providers } from "@countersign/provider";
import { processIo } from "./io.js";
import { runCli } from "./program.js";

process.exitCode = await runCli(process.argv.slice(2), processIo());
// Idle sockets to a provider would keep the process for a while.
await providers.close();
