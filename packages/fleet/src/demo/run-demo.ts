import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { forgetFolder, watchFolder } from "@countersign/devstack";
import { Ledger } from "@countersign/ledger";
import { providerByName, providers } from "@countersign/provider";
import { bareEnvironment, environmentFile, stackEnvironment } from "../child-env.js";
import type { Cleanup } from "../cleanup.js";
import { ClientProducer } from "../client-producer.js";
import { type Contract, readContracts } from "../contracts.js";
import { FleetError } from "../errors.js";
import { Fleet } from "../fleet.js";
import { SimulatorProcess } from "../simulator-process.js";
import { startEmbeddedStack } from "../stack.js";
import { shrunkProvider, shrunkWindows } from "../windows.js";
import { auditDemo, type DemoAudit, isClean } from "./audit.js";
import { type Deal, layOut } from "./deal.js";
import { drive } from "./drive.js";
import { readOperations } from "./operations.js";
import type { DemoOptions } from "./options.js";
import { Progress } from "./progress.js";
import { calmProvider, faultsOf, recipientsSign, withdrawFaults } from "./provider-faults.js";
import { auditText, findingsText, unresolvedText } from "./report.js";
import { setUpTenants, type TenantAccess, verifyConnections } from "./setup.js";
import { allResolved, Watch } from "./watch.js";

/** From the last plan on: how long operations may take to be resolved. */
const resolveWithinMs = 180_000;
/** After the last one is resolved: what may still be on its way to the provider's books. */
const aftermathMs = shrunkProvider.slowCommitMs + 500;

export interface DemoResult {
  readonly audit: DemoAudit;
  /** Nothing doubled, missing or wrongly void, and every fault was dealt. */
  readonly good: boolean;
}

interface Parts {
  readonly folder: string;
  readonly ledger: Ledger;
  readonly simulator: SimulatorProcess;
  readonly fleet: Fleet;
  readonly tenants: readonly TenantAccess[];
}

/**
 * The whole demo up to its audit: stack, provider, fleet, tenants, work, audit. What it starts is given to `cleanup`.
 * @throws ContractsError before anything is started
 */
export async function runDemo(
  options: DemoOptions,
  output: NodeJS.WriteStream,
  cleanup: Cleanup,
  signal: AbortSignal,
): Promise<DemoResult> {
  const provider = providerByName("wesign");
  if (provider === undefined) throw new FleetError("this build has no WeSign adapter");
  const contracts = await readContracts(options.input, provider);
  const deal = layOut(options.intents, options.faults);
  const progress = new Progress(output, options.intents);
  const say = (text: string): void => progress.say(text);
  cleanup.add(() => providers.close());
  const parts = await startParts(options, cleanup, say, signal);
  await parts.simulator.configure(faultsOf(deal));
  const scripted = withdrawFaults(deal);
  if (scripted.length > 0) await parts.simulator.script(scripted);
  say(
    `Faults on: ${deal.faults} of ${options.intents} first attempts will end ambiguously; failing lookups, lost and doubled webhooks on top.`,
  );
  await work(contracts, deal, parts, progress, signal);
  const result = await takeAudit(deal, parts, say);
  if (!options.exit) say(addresses(parts));
  return result;
}

async function startParts(
  options: DemoOptions,
  cleanup: Cleanup,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<Parts> {
  const folder = await mkdtemp(join(tmpdir(), "countersign-demo-"));
  watchFolder(folder);
  cleanup.add(async () => {
    await rm(folder, { recursive: true, force: true });
    forgetFolder(folder);
  });
  say("Starting PostgreSQL, Redis and a signature provider…");
  const [stack, simulator] = await Promise.all([
    startEmbeddedStack(),
    SimulatorProcess.start({ seed: options.seed, config: calmProvider(20), logFile: join(folder, "simulator.log") }),
  ]);
  cleanup.add(() => stack.stop());
  cleanup.add(() => simulator.stop());
  for (const note of stack.notes) say(note);
  signal.throwIfAborted();
  const encryptionKey = randomBytes(32).toString("base64");
  const stackEnv = stackEnvironment(stack, encryptionKey);
  await writeFile(join(folder, "env"), environmentFile(stackEnv), { mode: 0o600 });
  const ledger = new Ledger({ databaseUrl: stack.databaseUrl, encryptionKey, maxConnections: 4 });
  cleanup.add(() => ledger.close(1_000));
  const fleet = await Fleet.start({
    scale: options.scale,
    env: { ...bareEnvironment(), ...stackEnv, ...shrunkWindows },
    logDir: folder,
    say,
  });
  cleanup.add(() => fleet.stop());
  say(`${fleet.processes().length} processes of the fleet are ready.`);
  signal.throwIfAborted();
  const tenants = await setUpTenants(ledger, simulator, fleet.urlOf("webhook-ingress"));
  const lagMs = await verifyConnections(ledger, tenants);
  say(`Two tenants; their connections are verified: the provider's lookup shows a request after ${lagMs} ms.`);
  return { folder, ledger, simulator, fleet, tenants };
}

async function work(
  contracts: readonly Contract[],
  deal: Deal,
  { ledger, simulator, fleet, tenants }: Parts,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const watch = new Watch(ledger, (rows) => progress.update(rows));
  watch.start();
  try {
    const apiUrl = fleet.urlOf("enqueuer");
    await drive({
      tenants: tenants.map(({ tenantId, apiKey }) => ({ tenantId, producer: new ClientProducer(apiUrl, apiKey) })),
      contracts,
      deal,
      watch,
      signal,
      changesPlanned: () => simulator.configure(recipientsSign),
    });
    const done = await watch.until(allResolved, resolveWithinMs, signal);
    progress.end();
    if (!done) progress.say(unresolvedText(await readOperations(ledger)));
  } finally {
    watch.stop();
  }
}

async function takeAudit(deal: Deal, parts: Parts, say: (text: string) => void): Promise<DemoResult> {
  const { ledger, simulator, folder } = parts;
  // A call given up on may still be committed: the books are read when that can't be any more.
  await delay(aftermathMs);
  const [operations, books] = await Promise.all([readOperations(ledger), simulator.audit()]);
  const { audit, findings } = auditDemo(operations, books);
  say(auditText(audit, operations, books));
  if (findings.length > 0) say(await findingsText(ledger, findings));
  const allDealt = books.faults.dealt === deal.faults;
  if (!allDealt)
    say(`Only ${books.faults.dealt} of ${deal.faults} faults met a first attempt: this run proves less than asked.`);
  const good = isClean(audit) && allDealt;
  if (!good) {
    forgetFolder(folder);
    say(`The logs of this run are in ${folder} until it ends.`);
  }
  return { audit, good };
}

/** Where to look while it stays up. */
function addresses({ fleet, simulator, folder }: Parts): string {
  const api = fleet.urlOf("enqueuer");
  return [
    "",
    `API              ${api}   (browse: ${api}/docs)`,
    `Webhook ingress  ${fleet.urlOf("webhook-ingress")}`,
    `Console          ${fleet.urlOf("console")}   (log in: countersign console-access add --name you --role operator)`,
    `Provider audit   ${simulator.url}/audit`,
    ...fleet.processes().map(({ name, url, pid }) => `Health           ${url}/readyz   ${name}, pid ${pid}`),
    `Logs             ${folder}`,
    `To use the CLI   set -a; . ${folder}/env; set +a; npm run countersign -- operations list --tenant northfield`,
  ].join("\n");
}
