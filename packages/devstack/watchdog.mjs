// @ts-check
/**
 * The watchdog ends what a process started, once that process is gone for whatever reason (kill -9 included).
 *
 * It reads one JSON message a line from stdin, which is a pipe only the supervised process holds open: end of file
 * means that process has ended. Then it ends the watched processes (those of stage "process" first, because
 * they use the services), then the services, then it removes the folders. A pid is only signalled while it is
 * still the same process (start time), never a stranger that got the number later.
 *
 * Plain JavaScript beside `src` and `dist`, so that the same file serves both.
 */
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

/** @typedef {{pid: number, identity: string, signal: NodeJS.Signals, graceMs: number, stage: "process" | "service"}} Watched */

const POLL_MS = 20;
const KILL_WAIT_MS = 5000;

/** @type {Map<number, Watched>} */
const watched = new Map();
/** @type {Set<string>} */
const folders = new Set();

/**
 * What tells this process from a later one with the same number; undefined when it is gone or a zombie.
 * @param {number} pid
 * @returns {string | undefined}
 */
function identityOf(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM says that it exists under another user; anything else, that it does not.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return undefined;
  }
  if (process.platform !== "linux") return "exists";
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined; // it went between the two looks
  }
}

/** @param {Watched} entry */
const isAlive = (entry) => identityOf(entry.pid) === entry.identity;

/**
 * @param {Watched} entry
 * @param {NodeJS.Signals} signal
 */
function send(entry, signal) {
  if (!isAlive(entry)) return;
  try {
    process.kill(entry.pid, signal);
  } catch (error) {
    console.error(`devstack watchdog: ${signal} to process ${entry.pid} failed: ${error}`);
  }
}

/**
 * @param {Watched[]} entries
 * @param {(entry: Watched) => number} allowanceMs
 */
async function waitUntilGone(entries, allowanceMs) {
  const start = performance.now();
  while (entries.some((entry) => isAlive(entry) && performance.now() - start < allowanceMs(entry)))
    await delay(POLL_MS);
}

/** @param {Watched[]} entries */
async function end(entries) {
  for (const entry of entries) {
    send(entry, entry.signal);
    send(entry, "SIGCONT"); // a stopped process could not act on the first signal
  }
  await waitUntilGone(entries, (entry) => entry.graceMs);
  for (const entry of entries) send(entry, "SIGKILL");
  await waitUntilGone(entries, () => KILL_WAIT_MS);
}

async function endEverything() {
  const entries = [...watched.values()];
  await end(entries.filter((entry) => entry.stage === "process"));
  await end(entries.filter((entry) => entry.stage === "service"));
  for (const folder of folders) {
    try {
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    } catch (error) {
      console.error(`devstack watchdog: ${folder} could not be removed: ${error}`);
    }
  }
  process.exit(0);
}

/** @param {string} line */
function obey(line) {
  const message = JSON.parse(line);
  if (message.op === "watch") {
    const identity = identityOf(message.pid);
    if (identity !== undefined) watched.set(message.pid, { ...message, identity });
  } else if (message.op === "unwatch") watched.delete(message.pid);
  else if (message.op === "folder") folders.add(message.path);
  else if (message.op === "forget") folders.delete(message.path);
}

// Its life ends with the pipe, not with a signal that was meant for the process it serves.
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => undefined);
// The terminal may be gone by the time there is something to say.
process.stderr.on("error", () => undefined);

createInterface({ input: process.stdin }).on("line", obey).on("close", endEverything);
