import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { inspect, isExecutable, type RedisBinary } from "./redis-binary.js";

const run = promisify(execFile);

const PACKAGES = ["redis-server", "redis-tools"];
/** Part of every system that has apt. */
const ALWAYS_THERE = new Set(["libc6"]);
const COMMAND_TIMEOUT_MS = 120_000;
/** After a failure other processes don't try again for this long: each of a test run's would wait for the network. */
const FAILURE_STANDS_MS = 60_000;

/** Where fetched things are kept: `COUNTERSIGN_CACHE_DIR`, else `XDG_CACHE_HOME/countersign`, else `~/.cache/countersign`. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return env.COUNTERSIGN_CACHE_DIR ?? join(env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "countersign");
}

/**
 * The distribution's Redis (Debian, Ubuntu), downloaded and unpacked into the cache folder: needs no root and does
 * not touch the system. Two processes may do it at once. Throws an error that says what did not work.
 */
export async function fetchPackage(cache: string): Promise<RedisBinary> {
  const folder = join(cache, "redis");
  const kept = await inspectKept(folder);
  if (kept !== undefined) return kept;
  for (const tool of ["/usr/bin/apt-get", "/usr/bin/dpkg"]) {
    if (!(await isExecutable(tool))) throw new Error(`no package to fetch: ${tool} is missing (not Debian or Ubuntu)`);
  }
  await mkdir(cache, { recursive: true });
  const failure = join(cache, "redis-failure");
  await refuseWhileFailureStands(failure);
  const partial = join(cache, `redis.${randomBytes(6).toString("hex")}`);
  try {
    await unpackInto(partial);
    await inspectPackage(partial); // a package that does not run is not kept
    await publish(partial, folder);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await writeFile(failure, reason);
    throw error;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return inspectPackage(folder);
}

// In the Debian package redis-server is a link to redis-check-rdb, which acts by the name that it is called by.
function programIn(folder: string): string {
  return join(folder, "usr/bin/redis-server");
}

/** What an earlier run fetched. Removed when it no longer runs: the system's own libraries may have been upgraded since. */
async function inspectKept(folder: string): Promise<RedisBinary | undefined> {
  if (!(await isExecutable(programIn(folder)))) return undefined;
  try {
    return await inspectPackage(folder);
  } catch {
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
}

async function inspectPackage(folder: string): Promise<RedisBinary> {
  return inspect(programIn(folder), "package", await libraryPathOf(folder));
}

async function libraryPathOf(folder: string): Promise<string> {
  const found: string[] = [];
  for (const base of ["usr/lib", "lib"].map((name) => join(folder, name))) {
    const entries = await readdir(base).catch(() => []); // a package without libraries has no such folder
    found.push(base, ...entries.filter((name) => name.includes("-linux-")).map((name) => join(base, name)));
  }
  return found.join(delimiter);
}

async function publish(partial: string, folder: string): Promise<void> {
  try {
    await rename(partial, folder);
  } catch (error) {
    if (!(await isExecutable(programIn(folder)))) throw error; // else another process was first: same content
  }
}

async function refuseWhileFailureStands(file: string): Promise<void> {
  let age: number;
  let reason: string;
  try {
    age = Date.now() - (await stat(file)).mtimeMs;
    reason = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  if (age < FAILURE_STANDS_MS) {
    throw new Error(
      `fetching the package failed ${Math.round(age / 1000)} s ago (tried again after a minute): ${reason}`,
    );
  }
  await rm(file, { force: true });
}

async function unpackInto(partial: string): Promise<void> {
  const debs = `${partial}.debs`;
  const lists = `${partial}.apt`;
  await mkdir(partial, { recursive: true });
  try {
    await mkdir(debs);
    const system = await aptOptions(lists, false);
    try {
      await download(debs, system);
    } catch {
      // The system's package lists may be missing (slim images) or stale: fetch lists of our own, and leave those be.
      const own = await aptOptions(lists, true);
      await apt("apt-get", [...own, "update"], debs);
      await download(debs, own);
    }
    for (const deb of await readdir(debs)) {
      if (deb.endsWith(".deb")) await run("dpkg", ["-x", join(debs, deb), partial], { timeout: COMMAND_TIMEOUT_MS });
    }
  } finally {
    await rm(debs, { recursive: true, force: true });
    await rm(lists, { recursive: true, force: true });
  }
}

async function download(debs: string, options: readonly string[]): Promise<void> {
  const { stdout } = await apt("apt-cache", [...options, "depends", ...PACKAGES], debs);
  const needed = [...stdout.matchAll(/^\s*\|?Depends: (lib[\w.+-]+|lua[\w.+-]*)$/gm)].map(([, name = ""]) => name);
  const names = new Set([...PACKAGES, ...needed.filter((name) => !ALWAYS_THERE.has(name)), "libatomic1"]);
  await apt("apt-get", [...options, "download", ...names], debs);
}

/** Options that keep apt's caches, and with `ownLists` its package lists, in a folder of ours. */
async function aptOptions(folder: string, ownLists: boolean): Promise<string[]> {
  await mkdir(join(folder, "lists/partial"), { recursive: true });
  await mkdir(join(folder, "cache/archives/partial"), { recursive: true });
  // Container images hook cleaning commands to "update"; those would touch the system.
  const config = join(folder, "apt.conf");
  await writeFile(
    config,
    ["Update::Pre-Invoke", "Update::Post-Invoke", "Update::Post-Invoke-Success"]
      .map((name) => `#clear APT::${name};\n`)
      .join(""),
  );
  const settings = [
    `Dir::Cache=${join(folder, "cache")}`,
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
    // Under root apt would download as the user _apt, who can't reach a cache folder in root's home.
    ...(process.getuid?.() === 0 ? ["APT::Sandbox::User=root"] : []),
    ...(ownLists ? [`Dir::State::lists=${join(folder, "lists")}`] : []),
  ];
  return ["-c", config, ...settings.flatMap((setting) => ["-o", setting])];
}

async function apt(command: string, args: readonly string[], cwd: string): Promise<{ stdout: string }> {
  try {
    return await run(command, args, { cwd, timeout: COMMAND_TIMEOUT_MS, env: { ...process.env, LC_ALL: "C" } });
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw new Error(`${command} failed: ${said.split("\n").slice(-2).join(" ") || "no message"}`, { cause: error });
  }
}
