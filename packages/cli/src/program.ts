import { Command } from "commander";
import { addCompletion } from "./commands/completion.js";
import { addConnection } from "./commands/connection.js";
import { addConsoleAccess } from "./commands/console-access.js";
import { addDoctor } from "./commands/doctor.js";
import { addHold } from "./commands/hold.js";
import { addInbox } from "./commands/inbox.js";
import { addKey } from "./commands/key.js";
import { addLegalHold } from "./commands/legal-hold.js";
import { addMigrate } from "./commands/migrate.js";
import { addOperations } from "./commands/operations.js";
import { addPolicy } from "./commands/policy.js";
import { addProviders } from "./commands/providers.js";
import { addQueues } from "./commands/queues.js";
import { addRetention } from "./commands/retention.js";
import { addReview } from "./commands/review.js";
import { addSend } from "./commands/send.js";
import { addTenant } from "./commands/tenant.js";
import { addTickets } from "./commands/tickets.js";
import { addVoid } from "./commands/void.js";
import { addWebhook } from "./commands/webhook.js";
import { addWebhookEndpoint } from "./commands/webhook-endpoint.js";
import { type CommandTools, exitHelp, parse } from "./define.js";
import { type ExitCode, exitCodes } from "./errors.js";
import type { CliIo } from "./io.js";

/** Runs one command line (without `node` and the script) and resolves with its exit code. Never exits the process. */
export async function runCli(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  let code: ExitCode = exitCodes.done;
  const tools: CommandTools = {
    io,
    end: (exitCode) => {
      code = exitCode;
    },
  };
  const program = buildProgram(tools);
  await parse(program, argv, tools);
  return code;
}

/** Every command, as commander knows them. */
export function buildProgram(tools: CommandTools): Command {
  const { io } = tools;
  const program = new Command("countersign")
    .description("Administration and operation of Countersign. Reads DATABASE_URL and COUNTERSIGN_ENCRYPTION_KEY.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text.trimEnd()),
      writeErr: (text) => io.err(text.trimEnd()),
      // Errors are written once, by `parse`.
      outputError: () => undefined,
    })
    .showSuggestionAfterError(true)
    .addHelpText("after", `\n${exitHelp}`);
  addMigrate(program, tools);
  addTenant(program, tools);
  addKey(program, tools);
  addConsoleAccess(program, tools);
  addConnection(program, tools);
  addWebhookEndpoint(program, tools);
  addWebhook(program, tools);
  addSend(program, tools);
  addVoid(program, tools);
  addOperations(program, tools);
  addReview(program, tools);
  addTickets(program, tools);
  addInbox(program, tools);
  addHold(program, tools);
  addPolicy(program, tools);
  addProviders(program, tools);
  addLegalHold(program, tools);
  addRetention(program, tools);
  addQueues(program, tools);
  addDoctor(program, tools);
  addCompletion(program, tools);
  return program;
}
