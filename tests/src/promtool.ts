import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { access, constants, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

const cache = fileURLToPath(new URL("../../node_modules/.cache/promtool", import.meta.url));
const timeoutMs = 120_000;

const remedy =
  "Install Prometheus' promtool and put it on the PATH, or name it in PROMTOOL (Debian: apt-get install prometheus)";

/** promtool could not be had; the message says what was tried and what to do. */
export class PromtoolMissingError extends Error {
  override readonly name = "PromtoolMissingError";
}

/**
 * The path of promtool: `PROMTOOL`, else the first on the PATH, else that of Debian's package, downloaded and unpacked into
 * `node_modules/.cache` (no root, nothing installed). Throws {@link PromtoolMissingError}.
 */
export async function findPromtool(): Promise<string> {
  const { PROMTOOL: named, PATH: path = "" } = process.env;
  if (named !== undefined) {
    if (await runs(named)) return named;
    throw new PromtoolMissingError(`PROMTOOL names a program that does not run. ${remedy}`);
  }
  const unpacked = join(cache, "usr/bin/promtool");
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  for (const candidate of [...folders.map((folder) => join(folder, "promtool")), unpacked]) {
    if (await runs(candidate)) return candidate;
  }
  try {
    await fetchPackage();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new PromtoolMissingError(
      `no promtool on the PATH, and Debian's package could not be had: ${said}. ${remedy}`,
    );
  }
  if (await runs(unpacked)) return unpacked;
  throw new PromtoolMissingError(`the promtool of Debian's package does not run here. ${remedy}`);
}

/** What promtool prints. Throws with all of it where promtool is not content. */
export async function promtool(...args: string[]): Promise<string> {
  const command = await findPromtool();
  try {
    const { stdout, stderr } = await run(command, args, { timeout: timeoutMs });
    return stdout + stderr;
  } catch (error) {
    const said = ["stdout", "stderr"].map((name) => textOf(error, name)).join("\n");
    throw new Error(`promtool ${args.slice(0, 2).join(" ")} failed:\n${said}`, { cause: error });
  }
}

function textOf(error: unknown, name: string): string {
  const found: unknown = error instanceof Error ? Reflect.get(error, name) : undefined;
  return typeof found === "string" ? found : "";
}

async function runs(command: string): Promise<boolean> {
  try {
    await access(command, constants.X_OK);
    await run(command, ["--version"], { timeout: 20_000 });
    return true;
  } catch {
    return false; // absent, forbidden or of another machine: the same for us
  }
}

/** Two processes may do it at once: each unpacks into a folder of its own, and the first to finish is kept. */
async function fetchPackage(): Promise<void> {
  const work = `${cache}.${randomBytes(6).toString("hex")}`;
  const unpacked = join(work, "unpacked");
  await mkdir(unpacked, { recursive: true });
  try {
    await download(work);
    const [deb] = (await readdir(work)).filter((name) => name.endsWith(".deb"));
    if (deb === undefined) throw new Error("apt-get left no package");
    await run("dpkg", ["-x", join(work, deb), unpacked], { timeout: timeoutMs });
    await mkdir(dirname(cache), { recursive: true });
    await rename(unpacked, cache).catch(async (error: unknown) => {
      if (!(await runs(join(cache, "usr/bin/promtool")))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function download(work: string): Promise<void> {
  const system = await aptOptions(work, false);
  try {
    await run("apt-get", [...system, "download", "prometheus"], { cwd: work, timeout: timeoutMs });
  } catch {
    // The system's package lists are missing (slim images) or stale: lists of our own, and those are left alone.
    const own = await aptOptions(work, true);
    await run("apt-get", [...own, "update"], { cwd: work, timeout: timeoutMs });
    await run("apt-get", [...own, "download", "prometheus"], { cwd: work, timeout: timeoutMs });
  }
}

async function aptOptions(work: string, ownLists: boolean): Promise<string[]> {
  await mkdir(join(work, "lists/partial"), { recursive: true });
  await mkdir(join(work, "apt/archives/partial"), { recursive: true });
  // Container images hook cleaning commands to "update"; those would touch the system.
  const config = join(work, "apt.conf");
  const hooks = ["Update::Pre-Invoke", "Update::Post-Invoke", "Update::Post-Invoke-Success"];
  await writeFile(config, hooks.map((name) => `#clear APT::${name};\n`).join(""));
  const settings = [
    `Dir::Cache=${join(work, "apt")}`,
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
    // Under root apt would download as a user who may not reach this folder.
    ...(process.getuid?.() === 0 ? ["APT::Sandbox::User=root"] : []),
    ...(ownLists ? [`Dir::State::lists=${join(work, "lists")}`] : []),
  ];
  return ["-c", config, ...settings.flatMap((setting) => ["-o", setting])];
}
