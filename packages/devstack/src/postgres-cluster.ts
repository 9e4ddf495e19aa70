import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { FolderUnreachableError, ServerStartError } from "./errors.js";
import type { PostgresBinaries } from "./postgres-binaries.js";
import { isReachable, type ServiceUser } from "./service-user.js";
import { forgetFolder, watchFolder } from "./watchdog.js";

const run = promisify(execFile);

/** A database cluster on disk, ready to be served. */
export interface Cluster {
  readonly dataDir: string;
  /** A folder of the server's own beside the data: working directory and log. Removed with a temporary cluster. */
  readonly logFile: string;
  readonly password: string;
  /** What to remove at the end; undefined when the data is to stay. */
  readonly temporaryFolder: string | undefined;
}

/** The database superuser of every cluster made here. */
export const SUPERUSER = "postgres";
const PASSWORD_FILE = "countersign.password";
const LOG_FILE = "countersign.log";

/** No PG… setting of the caller's shell reaches the server. */
export const SERVER_ENV: Record<string, string> = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  LC_ALL: "C",
  TZ: "UTC",
};

/** Makes a cluster in a temporary folder that the watchdog removes when this process ends. */
export async function temporaryCluster(
  binaries: PostgresBinaries,
  user: ServiceUser | undefined,
  durable: boolean,
): Promise<Cluster> {
  const base = user !== undefined && !(await isReachable(tmpdir(), user)) ? "/tmp" : tmpdir();
  const folder = await mkdtemp(join(base, "countersign-postgres-"));
  watchFolder(folder);
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const dataDir = join(folder, "data");
  const password = await initialise(binaries, user, dataDir, durable);
  return { dataDir, logFile: join(folder, LOG_FILE), password, temporaryFolder: folder };
}

/**
 * Opens the cluster at `dataDir`, made there when there is none: under another name first, so that an interrupted
 * start leaves nothing half-made. Throws `FolderUnreachableError` when the server's user can't get there.
 */
export async function persistentCluster(
  binaries: PostgresBinaries,
  user: ServiceUser | undefined,
  wanted: string,
): Promise<Cluster> {
  const dataDir = resolve(wanted);
  const parent = dirname(dataDir);
  await mkdir(parent, { recursive: true });
  if (user !== undefined && !(await isReachable(parent, user))) throw new FolderUnreachableError(dataDir, user.name);
  if (!(await isCluster(dataDir))) {
    const partial = join(parent, `.${basename(dataDir)}-${randomBytes(6).toString("hex")}`);
    watchFolder(partial);
    try {
      await initialise(binaries, user, partial, true);
      await rename(partial, dataDir);
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      if (!(await isCluster(dataDir))) throw error; // else another process was first
    } finally {
      forgetFolder(partial);
    }
  }
  const password = (await readFile(join(dataDir, PASSWORD_FILE), "utf8")).trim();
  return { dataDir, logFile: join(dataDir, LOG_FILE), password, temporaryFolder: undefined };
}

async function isCluster(dataDir: string): Promise<boolean> {
  try {
    await stat(join(dataDir, "PG_VERSION"));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

/** Runs initdb. Returns the superuser's password: random, because loopback is open to every user of the machine. */
async function initialise(
  binaries: PostgresBinaries,
  user: ServiceUser | undefined,
  dataDir: string,
  durable: boolean,
): Promise<string> {
  await mkdir(dataDir, { mode: 0o700 });
  const password = randomBytes(18).toString("base64url");
  const passwordFile = `${dataDir}.password`;
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flag: "wx" });
  try {
    if (user !== undefined) {
      await chown(dataDir, user.uid, user.gid);
      await chown(passwordFile, user.uid, user.gid);
    }
    const args = [
      `--pgdata=${dataDir}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      ...(durable ? [] : ["--no-sync"]),
    ];
    await run(binaries.initdb, args, {
      cwd: dataDir,
      env: SERVER_ENV,
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
    });
    await rename(passwordFile, join(dataDir, PASSWORD_FILE));
    return password;
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw new ServerStartError("PostgreSQL", `initdb failed${error instanceof Error ? ` (${error.name})` : ""}`, said);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/**
 * Where to keep PostgreSQL's data for a project: `<project>/.countersign/postgres`, unless we are root and the
 * server's user can't get there (a checkout below /root); then `/var/lib/countersign/<name of the project's path>`.
 */
export async function projectDataDir(project: string, user: ServiceUser | undefined): Promise<string> {
  const near = join(resolve(project), ".countersign", "postgres");
  if (user === undefined || (await isReachable(near, user))) return near;
  return join(
    "/var/lib/countersign",
    resolve(project)
      .replaceAll(/[^A-Za-z0-9]+/g, "-")
      .replace(/^-/, ""),
    "postgres",
  );
}
